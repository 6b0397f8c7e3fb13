// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 4. Swizzle: the same tiles, each row's 16-byte runs in another order.
//
// ldmatrix reads one run of each of 8 neighbouring rows at a time; these 8 must lie in the 8 groups of 4 banks.
//
//    tile of b, rows of 8 runs: run r at position r ^ (row mod 8)    tile of a, rows of 4 runs (two rows cover all
//    banks):
//      row 0   0 1 2 3 4 5 6 7                                         r ^ (row / 2 mod 4)
//      row 1   1 0 3 2 5 4 7 6                                         row 0   0 1 2 3      row 1   0 1 2 3
//      row 2   2 3 0 1 6 7 4 5                                         row 2   1 0 3 2      row 3   1 0 3 2
//      row 3   3 2 1 0 7 6 5 4                                         row 4   2 3 0 1      row 5   2 3 0 1
//      column 0 of rows 0-7: positions 0 1 2 3 4 5 6 7                 run 0 of rows 0-7: 8 different groups
//
// Only offset_a and offset_b change, for both writer and reader. Padding would do as well, at the cost of shared
// memory; TMA, the copy engine of Hopper, knows these swizzles and no padding.
//
// Saves: 96 wavefronts per 8 mma become 16, the fewest possible. Predicted: up to 6 times; then loading and computing
// in turn are the limit.
//
// Limit: a block loads, waits, multiplies, waits. Its tensor cores rest while 8 KiB travel.

namespace weft::kernels::cuda::matmul_bf16_4 {

constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpM = 32, kWarpN = 32;
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32, kRunsA = kTileK / 8, kRunsB = kTileN / 8;

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int offset_a(int row, int run) { return (row * kRunsA + (run ^ (row / 2 % 4))) * 8; }
__device__ int offset_b(int row, int run) { return (row * kRunsB + (run ^ row % 8)) * 8; }

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(bf16* y, const bf16* a, const bf16* b, int /*M*/, int N, int K) {
  bf16* const tile_a = dynamic_shared<bf16>();
  bf16* const tile_b = tile_a + kTileM * kTileK;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const int row = warp / (kTileN / kWarpN) * kWarpM, column = warp % (kTileN / kWarpN) * kWarpN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;

  float sum[kWarpM / 16][kWarpN / 8][4] = {};
  for (int k0 = 0; k0 < K; k0 += kTileK) {
    for (int i = thread; i < kTileM * kRunsA; i += kThreads)
      ptx::st16(tile_a + offset_a(i / kRunsA, i % kRunsA),
                ptx::ld16(a + (first_m + i / kRunsA) * K + k0 + i % kRunsA * 8));
    for (int i = thread; i < kTileK * kRunsB; i += kThreads)
      ptx::st16(tile_b + offset_b(i / kRunsB, i % kRunsB),
                ptx::ld16(b + (k0 + i / kRunsB) * N + first_n + i % kRunsB * 8));
    __syncthreads();
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
    __syncthreads();
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
  const Matmul<bf16> p("matmul_bf16/4_swizzle", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_bf16/4_swizzle", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads),
         kTileK * (kTileM + kTileN) * sizeof(bf16), matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/4_swizzle", "8 rows of a matrix lie in 8 groups of banks", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_bf16_4
