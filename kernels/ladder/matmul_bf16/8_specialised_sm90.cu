// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/ladder/matmul.cuh"

// 8. Warp specialisation: one warpgroup only loads, two only multiply; they meet at barriers, never all at once.
//
//     producer     wait empty 0, load 0 | wait empty 1, load 1 | …          full[s]: the bytes of stage s have landed
//     consumer 0   wait full 0, 4 wgmma, arrive empty 0 | wait full 1 …     empty[s]: both consumers are done with it
//     consumer 1   wait full 0, 4 wgmma, arrive empty 0 | wait full 1 …
//
//          256                   block: 128 x 256 of y, the largest tile whose sums fit: 128 registers a thread of
//       +--------------+         2 x 128 consumers. The producer needs hardly any: setmaxnreg hands 128 x 128 registers
//    64 | consumer 0   |         of its own to the consumers (40 and 232 of the 168 that all started with)
//       +--------------+
//    64 | consumer 1   |         per 64 of K: 48 KiB for 128 x 256 x 64 multiply-adds
//       +--------------+
//
// A barrier's phases alternate between parity 0 and 1; a fresh barrier counts as if phase 1 had just ended, so the
// producer's first waits pass at once.
//
// Saves: the block-wide barrier of each step: loading and multiplying run side by side, two consumers fill each other's
// gaps. Traffic per multiply-add: 3 / 4 of step 7's. Predicted: 1.4 to 1.5 times. Others: 423 -> 498 (specialised) ->
// 610 (128 x 256, two consumers) -> 631 TFLOP/s (setmaxnreg), 88% of cuBLAS; one warpgroup with this tile spills: 123
// (worklog of fast.cu, H100).
//
// Limit: the time between tiles: a tile's stores and the next tile's first loads are serialised, and the tiles' order
// decides the hits in L2.

namespace weft::kernels::cuda::matmul_bf16_8 {

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kThreads = 128 * (1 + kTileM / 64);
constexpr int kLine = 128, kGroup = 8 * kLine;  // bytes: of a line, of the 8 lines that a swizzle covers
constexpr int kBytesA = kTileM * kLine, kBytesB = kTileN / 64 * kTileK * kLine, kStage = kBytesA + kBytesB;

__global__ void __launch_bounds__(kThreads, 1) matmul_kernel(bf16* y, const __grid_constant__ TensorMap map_a,
                                                             const __grid_constant__ TensorMap map_b, int N, int K) {
  uint8_t* const ring = dynamic_shared<uint8_t>();
  __shared__ ptx::Barrier full[kStages], empty[kStages];
  const int thread = static_cast<int>(threadIdx.x) % 128, steps = K / kTileK;
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;  // -1: the producer
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], kThreads - 128);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();

  if (consumer < 0) {
    ptx::release_registers<40>();
    for (int step = 0; thread == 0 && step < steps; ++step) {
      uint8_t* const a = ring + step % kStages * kStage;
      ptx::Barrier* const barrier = &full[step % kStages];
      ptx::mbarrier_wait(&empty[step % kStages], (step / kStages + 1) % 2);
      ptx::mbarrier_arrive_expect_tx(barrier, kStage);
      ptx::tma_load(a, map_a, barrier, step * kTileK, first_m);
      for (int n = 0; n < kTileN; n += 64)
        ptx::tma_load(a + kBytesA + n * kLine, map_b, barrier, first_n + n, step * kTileK);
    }
  } else {
    ptx::acquire_registers<232>();
    float sum[kTileN / 2] = {};
    for (int step = 0; step < steps; ++step) {
      const uint8_t* const a = ring + step % kStages * kStage;
      ptx::mbarrier_wait(&full[step % kStages], step / kStages % 2);
      ptx::wgmma_fence();
      WEFT_UNROLL
      for (int k = 0; k < kTileK / 16; ++k)
        ptx::wgmma<bf16, kTileN, ptx::Along::depth, ptx::Along::rows>(
            sum, ptx::wgmma_descriptor(a + consumer * 64 * kLine + k * 32, Swizzle::bytes128, 0, kGroup),
            ptx::wgmma_descriptor(a + kBytesA + k * 16 * kLine, Swizzle::bytes128, kTileK * kLine, kGroup));
      ptx::wgmma_commit();
      ptx::wgmma_wait<0>();
      ptx::mbarrier_arrive(&empty[step % kStages]);
    }
    bf16* const to = y + (first_m + consumer * 64 + thread / 32 * 16 + thread % 32 / 4) * N + first_n + thread % 4 * 2;
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) WEFT_UNROLL
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t*>(to + half * 8 * N + j * 8) =
          ptx::pack<bf16>(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
  }
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const char* const name = "matmul_bf16/8_specialised_sm90";
  const Matmul<bf16> p(name, y, a, b, {kTileM, kTileN, kTileK});
  const TensorMap map_a =
      tiled_map(name, {p.a, DType::bf16, 2, {p.K, p.M}, {int64_t{p.K} * 2}, {kTileK, kTileM}, Swizzle::bytes128});
  const TensorMap map_b =
      tiled_map(name, {p.b, DType::bf16, 2, {p.N, p.K}, {int64_t{p.N} * 2}, {64, kTileK}, Swizzle::bytes128});
  launch(queue, name, dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), kStages * kStage, matmul_kernel,
         p.y, map_a, map_b, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/8_specialised_sm90", "Hopper: one warpgroup loads, two multiply", Sizes::multiples,
                     has_wgmma);

}  // namespace weft::kernels::cuda::matmul_bf16_8
