// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/softmax/softmax.cuh"

// 1. Three passes: one thread per row, the plain formula.
//
//   pass 1    most = max x[c]                    thread 0:  x x x x x x x x x x x
//   pass 2    sum  = sum exp(x[c] - most)        thread 1:  x x x x x x x x x x x
//   pass 3    y[c] = exp(x[c] - most) / sum      thread 2:  x x x x x x x x x x x
//
// Cost: each row is read three times and written once: 16 bytes per element where 8 must be. A warp reads an element of
// 32 rows at a time: 32 sectors for 128 bytes, 8 times too many, unless the cache keeps 32 rows per warp
// until their neighbours are asked for. For M rows only M threads run: 8192 rows are 4 warps for each SM of an H100,
// which holds 64.
//
// Limit: scattered access and far too few threads.

namespace weft::kernels::cuda::softmax_1 {

constexpr int kThreads = 128;

__global__ void softmax_kernel(float* y, const float* x, int M, int C) {
  const int m = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (m >= M) return;
  const float* const in = x + m * C;
  float most = -INFINITY;
  for (int c = 0; c < C; ++c) most = fmaxf(most, in[c]);
  float sum = 0;
  for (int c = 0; c < C; ++c) sum += expf(in[c] - most);
  for (int c = 0; c < C; ++c) y[m * C + c] = expf(in[c] - most) / sum;
}

void run(const Queue& queue, const View& y, const View& x) {
  const Rows p("softmax/1_three_passes", y, x);
  launch(queue, "softmax/1_three_passes", dim3(tiles(p.M, kThreads)), dim3(kThreads), 0, softmax_kernel, p.y, p.x, p.M,
         p.C);
}

const Rung<run> rung("softmax/1_three_passes", "one thread per row: maximum, sum, quotient");

}  // namespace weft::kernels::cuda::softmax_1
