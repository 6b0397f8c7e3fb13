// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/cuda/ptx/ring_position.cuh"
#include "kernels/ladder/matmul.cuh"

// 9. Persistent blocks, and an order of tiles that suits L2: as many blocks as multiprocessors, each of which goes from
// tile to tile.
//
//     producer    loads of tile 0 | loads of tile 132 | loads of tile 264 …      never waits for a tile's stores: it is
//     consumers        wgmma 0 | store | wgmma 132 | store | …                   up to 4 stages ahead, into the next
//     tile
//
// Step 8's order of tiles is that of blockIdx: along a row of tiles, then the next row. 132 tiles in flight of an
// 8192 x 8192 result are then 4 rows of 32: for every k they read 4 x 128 lines of a and all 8192 columns of b. Here
// tiles form panels of 16 rows, which are walked column by column:
//
//       N ->                            in flight: 16 x 8 tiles, 2048 lines of a and 2112 columns of b for every k,
//     M +--+--+--+--+--                 half of the 8720 before, and the same b serves 16 tiles at a time
//     | | 0|16|32|48|  panel 0:
//     v | 1|17|33|49|  16 rows of       4096 x 4096: 4160 instead of 5152
//       |  …        |  tiles
//       +--+--+--+--+--
//
// The whole ring goes on over tiles: which stage, and which parity its barriers have, counts steps of all tiles.
//
// Saves: the start of each tile (its first loads take a whole memory latency without multiplication), and the end (no
// loads during stores). With K = 4096 these are some 2 of 64 steps; reads that miss L2. Predicted: 1.05
// times. Others: 631 -> 660 TFLOP/s for persistent blocks and the order together (worklog of fast.cu, H100).
//
// Limit: L2 still delivers 48 KiB for every tile and step: 132 blocks want 6 MiB in the 1100 clocks that a step lasts,
// 5.6 KiB a clock, about what L2 can.

namespace weft::kernels::cuda::matmul_bf16_9 {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kThreads = 128 * (1 + kTileM / 64), kPanel = 16;
constexpr int kLine = 128, kGroup = 8 * kLine;  // bytes: of a line, of the 8 lines that a swizzle covers
constexpr int kBytesA = kTileM * kLine, kBytesB = kTileN / 64 * kTileK * kLine, kStage = kBytesA + kBytesB;

/// Tile number i of all, in tiles.
struct Position {
  int m, n;
};
__device__ Position position(int i, int tiles_m, int tiles_n) {
  const int panel = i / (kPanel * tiles_n), rows = min(kPanel, tiles_m - panel * kPanel);
  const int rest = i - panel * kPanel * tiles_n;
  return {panel * kPanel + rest % rows, rest / rows};
}

__global__ void __launch_bounds__(kThreads, 1)
    matmul_kernel(bf16* y, const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b, int M,
                  int N, int K) {
  uint8_t* const ring = dynamic_shared<uint8_t>();
  __shared__ ptx::Barrier full[kStages], empty[kStages];
  const int thread = static_cast<int>(threadIdx.x) % 128, steps = K / kTileK;
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;  // -1: the producer
  const int tiles_m = M / kTileM, tiles_n = N / kTileN, count = tiles_m * tiles_n;
  const int first = static_cast<int>(blockIdx.x), stride = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], kThreads - 128);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();

  RingPosition<kStages> at;
  if (consumer < 0) {
    ptx::release_registers<40>();
    for (int tile = first; thread == 0 && tile < count; tile += stride) {
      const Position to = position(tile, tiles_m, tiles_n);
      for (int step = 0; step < steps; ++step, at.advance()) {
        uint8_t* const a = ring + at.stage * kStage;
        ptx::mbarrier_wait(&empty[at.stage], at.parity ^ 1);
        ptx::mbarrier_arrive_expect_tx(&full[at.stage], kStage);
        ptx::tma_load(a, map_a, &full[at.stage], step * kTileK, to.m * kTileM);
        for (int n = 0; n < kTileN; n += 64)
          ptx::tma_load(a + kBytesA + n * kLine, map_b, &full[at.stage], to.n * kTileN + n, step * kTileK);
      }
    }
  } else {
    ptx::acquire_registers<232>();
    for (int tile = first; tile < count; tile += stride) {
      const Position from = position(tile, tiles_m, tiles_n);
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
        ptx::mbarrier_arrive(&empty[at.stage]);
      }
      bf16* const to = y + (from.m * kTileM + consumer * 64 + thread / 32 * 16 + thread % 32 / 4) * N +
                       from.n * kTileN + thread % 4 * 2;
#pragma unroll
      for (int j = 0; j < kTileN / 8; ++j) WEFT_UNROLL
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(to + half * 8 * N + j * 8) =
            ptx::pack<bf16>(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
    }
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const char* const name = "matmul_bf16/9_persistent_sm90";
  const Matmul<bf16> p(name, y, a, b, {kTileM, kTileN, kTileK});
  const TensorMap map_a =
      tiled_map(name, {p.a, DType::bf16, 2, {p.K, p.M}, {int64_t{p.K} * 2}, {kTileK, kTileM}, Swizzle::bytes128});
  const TensorMap map_b =
      tiled_map(name, {p.b, DType::bf16, 2, {p.N, p.K}, {int64_t{p.N} * 2}, {64, kTileK}, Swizzle::bytes128});
  const unsigned blocks =
      std::min(tiles(p.N, kTileN) * tiles(p.M, kTileM), static_cast<unsigned>(multiprocessors(queue)));
  launch(queue, name, dim3(blocks), dim3(kThreads), kStages * kStage, matmul_kernel, p.y, map_a, map_b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/9_persistent_sm90", "Hopper: blocks that stay, tiles in panels for L2",
                     Sizes::multiples, has_wgmma);

}  // namespace weft::kernels::cuda::matmul_bf16_9
