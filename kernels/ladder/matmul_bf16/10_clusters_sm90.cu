// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/cuda/ptx/ring_position.cuh"
#include "kernels/ladder/matmul.cuh"

// 10. Clusters: two blocks on neighbouring multiprocessors work on tiles above each other and share their loads.
//
//          256 columns of b                both blocks multiply by the same 64 x 256 of b. Each loads half of it, and
//       +--------+--------+                TMA's multicast writes this half to the same offset in the shared memory of
//       | left   | right  |                both, and notifies the same barrier of both:
//       +--------+--------+
//   128 | block 0         |                  block 0 loads its a and the left half of b   -> both
//       +--------+--------+                  block 1 loads its a and the right half of b  -> both
//   128 | block 1         |
//       +--------+--------+                a block's `full` expects all 48 KiB, from either block
//
// A stage may be filled again when the consumers of *both* blocks have read it, since each block writes to both. So one
// lane of each warp arrives at its own block's `empty` and another at the neighbour's: 16 arrivals of 8 + 8 warps,
// where step 9 had 256 of its own threads. And no block may leave while the other still writes or arrives: one more
// cluster_sync() at the end.
//
// Saves: a third of what L2 delivers: 32 KiB a step and block instead of 48. Predicted: 1.1 times where L2 was the
// limit. Others: 704 -> 734 TFLOP/s (worklog of fast.cu, H100). Larger clusters save less and less, and have to find
// that many multiprocessors free in one group of the chip.
//
// Limit: stores of 4 bytes a lane, 8 rows apart; and any size that is not whole tiles.

namespace weft::kernels::cuda::matmul_bf16_10 {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kThreads = 128 * (1 + kTileM / 64), kPanel = 8;
constexpr int kCluster = 2, kWarps = kTileM / 16;  // kWarps: of a block's consumers; kPanel: in clusters
constexpr int kLine = 128, kGroup = 8 * kLine;     // bytes: of a line, of the 8 lines that a swizzle covers
constexpr int kBytesA = kTileM * kLine, kBytesB = kTileN / 64 * kTileK * kLine, kStage = kBytesA + kBytesB;
constexpr int kShared = kStages * kStage + 2 * kStages * static_cast<int>(sizeof(ptx::Barrier));

/// The cluster's tile number i of all: its row in clusters, its column in tiles.
struct Position {
  int m, n;
};
__device__ Position position(int i, int clusters_m, int tiles_n) {
  const int panel = i / (kPanel * tiles_n), rows = min(kPanel, clusters_m - panel * kPanel);
  const int rest = i - panel * kPanel * tiles_n;
  return {panel * kPanel + rest % rows, rest / rows};
}

__global__ void __launch_bounds__(kThreads, 1)
    matmul_kernel(bf16* y, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, int M,
                  int N, int K) {
  uint8_t* const ring = dynamic_shared<uint8_t>();
  auto* const full = reinterpret_cast<ptx::Barrier*>(ring + kStages * kStage);
  ptx::Barrier* const empty = full + kStages;
  const int thread = static_cast<int>(threadIdx.x) % 128, steps = K / kTileK, rank = ptx::cluster_rank();
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;  // -1: the producer
  const int clusters_m = M / (kTileM * kCluster), tiles_n = N / kTileN, count = clusters_m * tiles_n;
  const int first = static_cast<int>(blockIdx.x) / kCluster, stride = static_cast<int>(gridDim.x) / kCluster;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], kCluster * kWarps);
    }
    ptx::mbarrier_init_fence();
  }
  ptx::cluster_sync();  // the neighbour's barriers are there

  RingPosition<kStages> at;
  if (consumer < 0) {
    ptx::release_registers<40>();
    for (int tile = first; thread == 0 && tile < count; tile += stride) {
      const Position to = position(tile, clusters_m, tiles_n);
      for (int step = 0; step < steps; ++step, at.advance()) {
        uint8_t* const a = ring + at.stage * kStage;
        ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
        ptx::mbarrier_arrive_expect_tx(&full[at.stage], kStage);
        ptx::tma_load(a, map_a, &full[at.stage], step * kTileK, (to.m * kCluster + rank) * kTileM);
        constexpr int kHalf = kTileN / kCluster;
        for (int n = rank * kHalf; n < rank * kHalf + kHalf; n += 64)
          ptx::tma_load_multicast(a + kBytesA + n * kLine, map_b, &full[at.stage], (1 << kCluster) - 1,
                                  to.n * kTileN + n, step * kTileK);
      }
    }
    __syncwarp();
  } else {
    ptx::acquire_registers<232>();
    for (int tile = first; tile < count; tile += stride) {
      const Position from = position(tile, clusters_m, tiles_n);
      float sum[kTileN / 2];
      for (int step = 0; step < steps; ++step, at.advance()) {
        const uint8_t* const a = ring + at.stage * kStage;
        ptx::mbarrier_wait(&full[at.stage], at.parity);
        ptx::wgmma_fence();
        WEFT_UNROLL
        for (int k = 0; k < kTileK / 16; ++k)
          ptx::wgmma<bf16, kTileN, ptx::Along::depth, ptx::Along::rows>(
              sum, ptx::wgmma_descriptor(a + consumer * 64 * kLine + k * 32, Swizzle::bytes128, 0, kGroup),
              ptx::wgmma_descriptor(a + kBytesA + k * 16 * kLine, Swizzle::bytes128, kTileK * kLine, kGroup),
              step > 0 || k > 0);
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        __syncwarp();
        if (thread % 32 < kCluster) ptx::mbarrier_arrive_cluster(&empty[at.stage], thread % 32);
      }
      bf16* const to = y +
                       ((from.m * kCluster + rank) * kTileM + consumer * 64 + thread / 32 * 16 + thread % 32 / 4) * N +
                       from.n * kTileN + thread % 4 * 2;
#pragma unroll
      for (int j = 0; j < kTileN / 8; ++j) WEFT_UNROLL
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(to + half * 8 * N + j * 8) =
            ptx::pack<bf16>(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
    }
  }
  ptx::cluster_sync();
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const char* const name = "matmul_bf16/10_clusters_sm90";
  const Matmul<bf16> p(name, y, a, b, {kTileM * kCluster, kTileN, kTileK});
  const TensorMap map_a =
      tiled_map(name, {p.a, DType::bf16, 2, {p.K, p.M}, {int64_t{p.K} * 2}, {kTileK, kTileM}, Swizzle::bytes128});
  const TensorMap map_b =
      tiled_map(name, {p.b, DType::bf16, 2, {p.N, p.K}, {int64_t{p.N} * 2}, {64, kTileK}, Swizzle::bytes128});
  const unsigned clusters = std::min(tiles(p.N, kTileN) * tiles(p.M, kTileM * kCluster),
                                     static_cast<unsigned>(std::max(1, multiprocessors(queue) / kCluster)));
  launch_cluster(queue, name, dim3(clusters * kCluster), dim3(kThreads), kShared, dim3(kCluster), matmul_kernel, p.y,
                 map_a, map_b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/10_clusters_sm90", "Hopper: two blocks share b by multicast", Sizes::multiples,
                     has_wgmma);

}  // namespace weft::kernels::cuda::matmul_bf16_10
