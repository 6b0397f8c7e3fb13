// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/convert.cuh"
#include "kernels/ladder/matmul.cuh"

// 1. Naive: ladder matmul_f32's second step, with elements of 2 bytes.
//
//   y[m,n] = a[m,0] b[0,n] + a[m,1] b[1,n] + …          neighbours in a warp are neighbours in n; the sum is f32
//
// bf16 is the upper half of an f32: the same range, 8 bits of significand. Products of two are exact in f32, and the
// sum is kept in f32, so only the inputs and the result are rounded.
//
// Cost: 3 sectors per k and warp (1 of a, a broadcast; 2 of b) for 32 multiply-adds, each with two conversions.
//
// Limit: this uses the ordinary pipes: 128 multiply-adds per clock and SM. The tensor cores of the same SM do 1024
// (A100) or 2048 (H100) with bf16 operands. Without them at most 1 / 16 of an H100 can be reached, and this step is far
// from that.

namespace weft::kernels::cuda::matmul_bf16_1 {

constexpr int kBlock = 32;

__global__ void matmul_kernel(bf16* y, const bf16* a, const bf16* b, int M, int N, int K) {
  const int m = static_cast<int>(blockIdx.y * kBlock + threadIdx.y);
  const int n = static_cast<int>(blockIdx.x * kBlock + threadIdx.x);
  if (m >= M || n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += from<float>(a[m * K + k]) * from<float>(b[k * N + n]);
  y[m * N + n] = to<bf16>(sum);
}

void run(const Queue& queue, const View& y, const View& a, const View& b) {
  const Matmul<bf16> p("matmul_bf16/1_naive", y, a, b);
  launch(queue, "matmul_bf16/1_naive", dim3(tiles(p.N, kBlock), tiles(p.M, kBlock)), dim3(kBlock, kBlock), 0,
         matmul_kernel, p.y, p.a, p.b, p.M, p.N, p.K);
}

const Rung<run> rung("matmul_bf16/1_naive", "one thread per element, on the ordinary pipes");

}  // namespace weft::kernels::cuda::matmul_bf16_1
