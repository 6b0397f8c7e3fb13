// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 3. Shared tiles and ldmatrix: the instruction that deals a matrix out to a warp's registers as mma wants it.
//
//   block: 64 x 64 of y, 4 warps of 32 x 32; 32 of K at a time       ldmatrix.x4: four 8 x 8 matrices, 512 bytes, at
//   once;
//                                                                    each lane names the address of one row (16 bytes)
//             b tile 32 x 64                                         and gets its pairs of all four
//             +------+------+
//             |      |      |          a [m][k]: rows along k, as mma wants a
//    a tile   +------+------+          b [k][n]: rows along n, mma wants pairs along k: ldmatrix.trans turns each 8 x 8
//   +----+    | w 0  | w 1  |
//   |    |    +------+------+
//   +----+    | w 2  | w 3  |          per 16 of k a warp loads 2 + 2 times x4 and issues 2 x 4 mma
//             +------+------+
//
// Saves: global traffic: a value is used 64 times: (64 + 64) x 2 bytes per k for 4096 multiply-adds, 4 sectors per mma
// instead of 48. Predicted: 12 times less from L2, but:
//
// Limit: bank conflicts. The 8 rows of a matrix lie 64 bytes apart in the tile of a. So every other row has the same
// group of 4 banks, 4 deep; in b they lie 128 bytes apart, 8 deep. 2 x 4 x 4 + 2 x 4 x 8 = 96 wavefronts for 8 mma,
// which an A100's SM could do in 16 clocks: 17% of its peak at best.

namespace weft::kernels::cuda::matmul_bf16_3 {

constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kWarpM = 32, kWarpN = 32;
constexpr int kThreads = kTileM / kWarpM * (kTileN / kWarpN) * 32, kRunsA = kTileK / 8, kRunsB = kTileN / 8;

/// Offset in elements of run `run` (8 elements, 16 bytes) of a row in its tile.
__device__ int offset_a(int row, int run) { return (row * kRunsA + run) * 8; }
__device__ int offset_b(int row, int run) { return (row * kRunsB + run) * 8; }

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
  const Matmul<bf16> p("matmul_bf16/3_shared_ldmatrix", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_bf16/3_shared_ldmatrix", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads),
         kTileK * (kTileM + kTileN) * sizeof(bf16), matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/3_shared_ldmatrix", "tiles in shared memory, dealt out by ldmatrix",
                     Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_bf16_3
