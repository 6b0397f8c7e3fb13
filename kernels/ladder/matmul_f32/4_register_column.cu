// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 4. Register column: a thread owns 8 elements of y, one below the other.
//
//            b  +--+--+ 64 columns         the thread reads b[k,n] ONCE from shared memory into a register
//             k |  |b |                    and uses it for its 8 rows
//               +--+--+
//     a  k      +--+--+
//       +-+     |  |y |  8 rows of one thread: sum[0] … sum[7] stay in registers
//       |a|     |  |y |
//       |a|     |  |: |  block: 64 x 64 of y, 512 threads, 8 of K at a time
//       +-+     +--+--+
//
// Saves: 8 multiply-adds need 8 reads of a (each one address for the whole warp: a broadcast) and 1 of b: 9 wavefronts
// instead of 16. And the tile is larger: a value from global memory is used 64 times instead of 32. Predicted: 16 / 9 =
// 1.8 times; more when the compiler reads 4 of a row of a at once (they lie side by side along k). Others: 12.8%
// -> 36.5% of cuBLAS.
//
// Limit: still 9 wavefronts for 8 multiply-adds, and an SM can do 4 multiply-adds per wavefront.
//
// From here on sizes must be whole tiles: masks would hide the idea. Weft's own kernel, the last step, takes any size.

namespace weft::kernels::cuda::matmul_f32_4 {

constexpr int kTileM = 64, kTileN = 64, kTileK = 8, kRows = 8;
constexpr int kThreads = kTileM / kRows * kTileN;

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ float tile_a[kTileM][kTileK], tile_b[kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kTileN * kRows, column = thread % kTileN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  float sum[kRows] = {};
  for (int k0 = 0; k0 < K; k0 += kTileK) {
    tile_a[thread / kTileK][thread % kTileK] = a[(first_m + thread / kTileK) * K + k0 + thread % kTileK];
    tile_b[thread / kTileN][thread % kTileN] = b[(k0 + thread / kTileN) * N + first_n + thread % kTileN];
    __syncthreads();
    for (int k = 0; k < kTileK; ++k) {
      const float w = tile_b[k][column];
      WEFT_UNROLL
      for (int i = 0; i < kRows; ++i) sum[i] += tile_a[row + i][k] * w;
    }
    __syncthreads();
  }
  WEFT_UNROLL
  for (int i = 0; i < kRows; ++i) y[(first_m + row + i) * N + first_n + column] = sum[i];
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/4_register_column", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/4_register_column", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/4_register_column", "a thread owns 8 rows: b stays in a register", Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_4
