// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 1. Naive: one thread per element of y, as in the formula.
//
//   y[m,n] = a[m,0] b[0,n] + a[m,1] b[1,n] + …          block: 32 x 32 threads, threadIdx.x walks DOWN the rows m
//
// A GPU does not run threads but warps: 32 threads with consecutive threadIdx.x that execute one instruction together.
// Memory comes in sectors of 32 bytes, and a warp's load costs as many sectors as its 32 addresses touch:
//
//      a, one warp, one k            b            y
//      x . . . . .  lane 0           x . .        x . .
//      x . . . . .  lane 1           . . .        x . .
//      x . . . . .  lane 2           . . .        x . .
//      32 rows: 32 sectors,          the same     32 rows again
//      of each 4 of 32 bytes used    address: 1
//
// Cost: per k and warp 33 sectors (1056 bytes) for 32 multiply-adds. Figures of others: 1.3% of cuBLAS (S. Boehm, RTX
// A6000, 4092^3, github.com/siboehm/SGEMM_CUDA).
//
// Limit: memory transactions. The neighbours in a warp are neighbours in m, which lies far apart in memory.

namespace weft::kernels::cuda::matmul_f32_1 {

constexpr int kBlock = 32;

__global__ void matmul_kernel(float* y, const float* a, const float* b, int M, int N, int K) {
  const int m = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  const int n = static_cast<int>(blockIdx.y * kBlock + threadIdx.y);
  if (m >= M || n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
  y[m * N + n] = sum;
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/1_naive", y, a, b);
  launch(queue, "matmul_f32/1_naive", dim3(tiles(p.M, kBlock), tiles(p.N, kBlock)), dim3(kBlock, kBlock), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/1_naive", "one thread per element, neighbours in different rows");

}  // namespace weft::kernels::cuda::matmul_f32_1
