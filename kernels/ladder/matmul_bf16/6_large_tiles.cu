// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 6. Larger tiles: 128 x 128 per block, 64 x 32 per warp.
//
//             128                          per 16 of k a warp loads 4 + 2 times x4 (24 wavefronts)
//        +---+---+---+---+                 and issues 4 x 4 = 16 mma
//     64 | w | w | w | w |
//        +---+---+---+---+  8 warps        before: 2 + 2 times x4 (16 wavefronts) for 8 mma
//     64 | w | w | w | w |
//        +---+---+---+---+
//          32
//
// The rule of matmul_f32's register and warp tiles once more: a tile of p x q costs p + q and earns p q.
//
// Saves: shared memory: 1.5 wavefronts per mma instead of 2. Global memory: 2 sectors per mma instead of 4. Costs
// registers: 64 sums a lane instead of 32. Predicted: 1.3 times where shared memory was the limit. On an A100 such a
// kernel comes close to cuBLAS. On an H100 it cannot: others measured 396 TFLOP/s against cuBLAS's 754 at 4096^3, 52%
// (kapilsharma.dev, a kernel of this kind in CUTLASS).
//
// Limit: on Hopper, mma.sync itself: every operand passes registers, and it feeds the tensor cores at some 60% of their
// rate. wgmma reads its operands from shared memory, 128 threads at a time. And small outputs leave SMs without a tile.

namespace weft::kernels::cuda::matmul_bf16_6 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 32, kWarpM = 64, kWarpN = 32, kStages = 4;
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32, kRunsA = kTileK / 8, kRunsB = kTileN / 8;
constexpr int kStage = kTileK * (kTileM + kTileN);  // elements

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int offset_a(int row, int run) { return (row * kRunsA + (run ^ (row / 2 % 4))) * 8; }
__device__ int offset_b(int row, int run) { return (row * kRunsB + (run ^ row % 8)) * 8; }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(bf16* y, const bf16* a, const bf16* b, int /*M*/, int N, int K) {
  bf16* const ring = dynamic_shared<bf16>();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / (kTileN / kWarpN) * kWarpM, column = warp % (kTileN / kWarpN) * kWarpN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;

  // Steps beyond the last are empty groups, so that the count of groups stays the count of steps.
  const auto load = [&](int step) {
    bf16* const tile_a = ring + step % kStages * kStage;
    bf16* const tile_b = tile_a + kTileM * kTileK;
    const int k0 = step * kTileK;
    for (int i = thread; k0 < K && i < kTileM * kRunsA; i += kThreads)
      ptx::cp_async<16>(tile_a + offset_a(i / kRunsA, i % kRunsA),
                        a + (first_m + i / kRunsA) * K + k0 + i % kRunsA * 8);
    for (int i = thread; k0 < K && i < kTileK * kRunsB; i += kThreads)
      ptx::cp_async<16>(tile_b + offset_b(i / kRunsB, i % kRunsB),
                        b + (k0 + i / kRunsB) * N + first_n + i % kRunsB * 8);
    ptx::cp_async_commit();
  };

  float sum[kWarpM / 16][kWarpN / 8][4] = {};
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < K / kTileK; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    load(step + kStages - 1);
    const bf16* const tile_a = ring + step % kStages * kStage;
    const bf16* const tile_b = tile_a + kTileM * kTileK;
    WEFT_UNROLL
    for (int k = 0; k < kTileK; k += 16) {
      uint32_t x[kWarpM / 16][4], w[kWarpN / 16][4];
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p)
        ptx::ldmatrix_x4(x[p], tile_a + offset_a(row + p * 16 + lane % 16, k / 8 + lane / 16));
      WEFT_UNROLL
      for (int q = 0; q < kWarpN / 16; ++q)
        ptx::ldmatrix_x4_trans(w[q], tile_b + offset_b(k + lane % 16, (column + q * 16) / 8 + lane / 16));
      WEFT_UNROLL
      for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
      for (int q = 0; q < kWarpN / 8; ++q)
        ptx::mma_m16n8k16<bf16>(sum[p][q], x[p], {w[q / 2][q % 2 * 2], w[q / 2][q % 2 * 2 + 1]});
    }
  }

  bf16* const to = y + (first_m + row + lane / 4) * N + first_n + column + lane % 4 * 2;
  WEFT_UNROLL
  for (int p = 0; p < kWarpM / 16; ++p) WEFT_UNROLL
  for (int q = 0; q < kWarpN / 8; ++q) WEFT_UNROLL
  for (int half = 0; half < 2; ++half)
    *reinterpret_cast<uint32_t*>(to + (p * 16 + half * 8) * N + q * 8) =
        ptx::pack<bf16>(sum[p][q][half * 2], sum[p][q][half * 2 + 1]);
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/6_large_tiles", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_bf16/6_large_tiles", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads),
         kStages * kStage * sizeof(bf16), matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/6_large_tiles", "128 x 128 per block, 64 x 32 per warp", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_bf16_6
