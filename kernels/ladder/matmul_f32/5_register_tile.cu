// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 5. Register tile: a thread owns a square of 8 x 8 elements of y.
//
//             w[0] … w[7]        for each k: 8 values of a and 8 of b from shared memory to registers,
//     x[0]   +-----------+       then their outer product: 64 multiply-adds
//      :     | sum[8][8] |
//     x[7]   +-----------+       block: 128 x 128 of y, 256 threads as 16 x 16, 8 of K at a time
//
// The general rule: a tile of p x q needs p + q reads for p q multiply-adds. Squares are best, and large ones better,
// until the registers are full: 64 sums + 16 operands + addresses of 255.
//
// Saves: 16 reads for 64 multiply-adds, 0.25 each instead of 1.13. Global memory: a value is used 128 times instead
// of 64. But the reads have conflicts now: neighbouring threads are 8 columns apart, so 16 threads share 4 of the 32
// banks, 4 deep. The 2 rows of threads of a warp share a bank of a. 8 x 4 + 8 x 2 = 48 wavefronts for 64
// multiply-adds. Predicted: 9 / 8 / (48 / 64) = 1.5 times. Others: 36.5% -> 68.7% of cuBLAS, 1.9 times.
//
// Limit: bank conflicts, and one instruction per 4 bytes for all this moving.

namespace weft::kernels::cuda::matmul_f32_5 {

constexpr int kTileM = 128, kTileN = 128, kTileK = 8, kSide = 8;
constexpr int kAcross = kTileN / kSide, kThreads = kTileM / kSide * kAcross;

__global__ void __launch_bounds__(kThreads)
    matmul_kernel(float* y, const float* a, const float* b, int /*M*/, int N, int K) {
  __shared__ float tile_a[kTileM][kTileK], tile_b[kTileK][kTileN];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / kAcross * kSide, column = thread % kAcross * kSide;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM, first_n = static_cast<int>(blockIdx.x) * kTileN;
  float sum[kSide][kSide] = {};
  for (int k0 = 0; k0 < K; k0 += kTileK) {
    for (int i = thread; i < kTileM * kTileK; i += kThreads) {
      tile_a[i / kTileK][i % kTileK] = a[(first_m + i / kTileK) * K + k0 + i % kTileK];
      tile_b[i / kTileN][i % kTileN] = b[(k0 + i / kTileN) * N + first_n + i % kTileN];
    }
    __syncthreads();
    for (int k = 0; k < kTileK; ++k) {
      float x[kSide], w[kSide];
      WEFT_UNROLL
      for (int i = 0; i < kSide; ++i) x[i] = tile_a[row + i][k];
      WEFT_UNROLL
      for (int j = 0; j < kSide; ++j) w[j] = tile_b[k][column + j];
      WEFT_UNROLL
      for (int i = 0; i < kSide; ++i) WEFT_UNROLL
      for (int j = 0; j < kSide; ++j) sum[i][j] += x[i] * w[j];
    }
    __syncthreads();
  }
  WEFT_UNROLL
  for (int i = 0; i < kSide; ++i) WEFT_UNROLL
  for (int j = 0; j < kSide; ++j) y[(first_m + row + i) * N + first_n + column + j] = sum[i][j];
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/5_register_tile", y, a, b, {kTileM, kTileN, kTileK});
  launch(queue, "matmul_f32/5_register_tile", dim3(tiles(p.N, kTileN), tiles(p.M, kTileM)), dim3(kThreads), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/5_register_tile", "a thread owns 8 x 8: 16 reads for 64 multiply-adds",
                     Sizes::multiples);

}  // namespace weft::kernels::cuda::matmul_f32_5
