// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/matmul.cuh"

// 2. Coalesced: the same arithmetic, but neighbours in a warp are neighbours in memory.
//
// The only change: threadIdx.x walks ALONG the columns n.
//
//      a, one warp, one k         b                      y
//      x . . . . .                x x x x x x x x        x x x x x x x x
//      all lanes the same         lanes 0 … 31:          lanes 0 … 31
//      address: 1 sector          4 sectors, all used
//
// Saves: 33 sectors per k and warp become 1 + 4 = 5. Predicted: 33 / 5 = 6.6 times. Others: 1.3% -> 8.5% of cuBLAS, 6.5
// times (Boehm).
//
// Limit: still 5 sectors (160 bytes) for 32 multiply-adds, 0.4 flop per byte; caches help, but an SM takes 64 bytes a
// clock from L2 and could do 128 multiply-adds with them. Every element of a is loaded by N threads, of b by M threads.

namespace weft::kernels::cuda::matmul_f32_2 {

constexpr int kBlock = 32;

__global__ void matmul_kernel(float* y, const float* a, const float* b, int M, int N, int K) {
  const int m = static_cast<int>(blockIdx.y * kBlock + threadIdx.y);
  const int n = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (m >= M || n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
  y[m * N + n] = sum;
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<float> p("matmul_f32/2_coalesced", y, a, b);
  launch(queue, "matmul_f32/2_coalesced", dim3(tiles(p.N, kBlock), tiles(p.M, kBlock)), dim3(kBlock, kBlock), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_f32/2_coalesced", "neighbours in a warp are neighbours in memory");

}  // namespace weft::kernels::cuda::matmul_f32_2
