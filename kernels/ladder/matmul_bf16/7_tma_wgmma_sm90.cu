// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/capability.cuh"
#include "kernels/cuda/ptx/ptx_wgmma.cuh"
#include "kernels/ladder/matmul.cuh"

// 7. TMA and wgmma: Hopper's tensor cores read their operands from shared memory, and a copy engine brings them.
//
//     TMA       one thread names a box of a matrix; the engine works out the addresses, swizzles, fills what lies
//     outside
//               with zeros, and counts the bytes that have landed at a barrier in shared memory (mbarrier)
//     wgmma     128 threads (a warpgroup) multiply 64 x 16 by 16 x N, both in shared memory, in the background; only
//     the sums
//               are registers. A 64-bit descriptor holds a tile's address and swizzle
//
//     thread 0:   load 0  load 1  load 2  load 3 | load 4 …          block: 128 x 128 of y, one warpgroup
//     all:        wait 0 -> 8 wgmma -> wait 1 -> 8 wgmma …           stage: 64 of K, 32 KiB, 4 of them
//
//     stage:  a  [128 rows][64 of K]: lines of 128 bytes along k       16 of K further: 32 bytes in each line
//             b  2 x [64 of K][64 columns]: lines along n, as memory   16 of K further: 16 lines, 2048 bytes
//                has them: wgmma turns b itself (Along::rows)
//
// Saves: all of ldmatrix, cp.async and their addresses: per 64 of K a block issues 3 copies and 8 wgmma, where step 6
// issued thousands of instructions; and registers for operands. Predicted: out of mma.sync's 60%. Others: 32 -> 317
// TFLOP/s for TMA and wgmma with a 64 x 64 tile, 423 with 128 x 128 (worklog of fast.cu, H100).
//
// Limit: between two steps all threads wait: for the tensor cores to finish, for the barrier, for thread
// 0.

namespace weft::kernels::cuda::matmul_bf16_7 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kStages = 4, kThreads = 128;
constexpr int kLine = 128, kGroup = 8 * kLine;  // bytes: of a line, of the 8 lines that a swizzle covers
constexpr int kBytesA = kTileM * kLine, kBytesB = kTileN / 64 * kTileK * kLine, kStage = kBytesA + kBytesB;

__global__ void __launch_bounds__(kThreads) matmul_kernel(bf16* y, const __grid_constant__ TensorMap map_a,
                                                          const __grid_constant__ TensorMap map_b, int N, int K) {
  uint8_t* const ring = dynamic_shared<uint8_t>();
  __shared__ ptx::Barrier full[kStages];
  const int thread = static_cast<int>(threadIdx.x), steps = K / kTileK;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;

  const auto load = [&](int step) {
    uint8_t* const a = ring + step % kStages * kStage;
    ptx::Barrier* const barrier = &full[step % kStages];
    ptx::mbarrier_arrive_expect_tx(barrier, kStage);
    ptx::tma_load(a, map_a, barrier, step * kTileK, first_m);
    for (int n = 0; n < kTileN; n += 64)
      ptx::tma_load(a + kBytesA + n * kLine, map_b, barrier, first_n + n, step * kTileK);
  };
  if (thread == 0) {
    for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(&full[s], 1);
    ptx::mbarrier_init_fence();
    for (int step = 0; step < kStages && step < steps; ++step) load(step);
  }
  __syncthreads();

  float sum[kTileM / 64][kTileN / 2] = {};
  for (int step = 0; step < steps; ++step) {
    const uint8_t* const a = ring + step % kStages * kStage;
    ptx::mbarrier_wait(&full[step % kStages], step / kStages % 2);
    ptx::wgmma_fence();
    WEFT_UNROLL
    for (int k = 0; k < kTileK / 16; ++k) {
      const uint64_t b = ptx::wgmma_descriptor(a + kBytesA + k * 16 * kLine, Swizzle::bytes128, kTileK * kLine, kGroup);
      WEFT_UNROLL
      for (int p = 0; p < kTileM / 64; ++p)
        ptx::wgmma<bf16, kTileN, ptx::Along::depth, ptx::Along::rows>(
            sum[p], ptx::wgmma_descriptor(a + p * 64 * kLine + k * 32, Swizzle::bytes128, 0, kGroup), b);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    __syncthreads();  // all four warps are done with the stage
    if (thread == 0 && step + kStages < steps) load(step + kStages);
  }

  bf16* const to = y + (first_m + thread / 32 * 16 + thread % 32 / 4) * N + first_n + thread % 4 * 2;
  WEFT_UNROLL
  for (int p = 0; p < kTileM / 64; ++p)
#pragma unroll
    for (int j = 0; j < kTileN / 8; ++j) WEFT_UNROLL
  for (int half = 0; half < 2; ++half)
    *reinterpret_cast<uint32_t*>(to + (p * 64 + half * 8) * N + j * 8) =
        ptx::pack<bf16>(sum[p][4 * j + 2 * half], sum[p][4 * j + 2 * half + 1]);
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const char* const name = "matmul_bf16/7_tma_wgmma_sm90";
  const Matmul<bf16> p(name, y, a, b, {kTileM, kTileN, kTileK});
  const TensorMap map_a =
      tiled_map(name, {p.a, DType::bf16, 2, {p.K, p.M}, {int64_t{p.K} * 2}, {kTileK, kTileM}, Swizzle::bytes128});
  const TensorMap map_b =
      tiled_map(name, {p.b, DType::bf16, 2, {p.N, p.K}, {int64_t{p.N} * 2}, {64, kTileK}, Swizzle::bytes128});
  launch(queue, name, dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), kStages * kStage, matmul_kernel,
         p.y, map_a, map_b, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/7_tma_wgmma_sm90", "Hopper: a copy engine, tensor cores that read shared memory",
                     Sizes::multiples, has_wgmma);

}  // namespace weft::kernels::cuda::matmul_bf16_7
