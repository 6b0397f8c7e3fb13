// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/softmax/softmax.cuh"

// 3. Warp per row: 32 lanes read 32 neighbours.
//
//   row      lane 0 1 2 … 31 | 0 1 2 … 31 | …      each lane keeps (most, sum) of its own elements;
//            +--- 4 sectors -+                     5 shuffles join the 32 pairs:
//
//   join     most = max(most a, most b),   sum = sum a · exp(most a - most) + sum b · exp(most b - most)
//
// Saves: 32 sectors per request become 4, all used. 32 times as many threads run: rows are short jobs now.
// Predicted: 8 times fewer sectors; the kernel should reach what reading twice and writing once allows: 8 / 12 = 67% of
// a copy's rate, more where the second read finds the row in the cache.
//
// Limit: the second read of the row.

namespace weft::kernels::cuda::softmax_3 {

constexpr int kThreads = 128, kRows = kThreads / 32;
constexpr unsigned kAllLanes = 0xffffffffu;

__global__ void softmax_kernel(float* y, const float* x, int M, int C) {
  const int m = static_cast<int>(blockIdx.x * kRows + threadIdx.x / 32), lane = static_cast<int>(threadIdx.x) % 32;
  if (m >= M) return;  // the whole warp
  const float* const in = x + m * C;
  float most = -INFINITY, sum = 0;
  for (int c = lane; c < C; c += 32) {
    const float value = in[c];
    if (value > most) {
      sum *= expf(most - value);
      most = value;
    }
    sum += expf(value - most);
  }
  float of_row = most;
  for (int d = 16; d > 0; d /= 2) of_row = fmaxf(of_row, __shfl_xor_sync(kAllLanes, of_row, d));
  sum = sum > 0 ? sum * expf(most - of_row) : 0;  // a lane without elements has no maximum
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
  for (int c = lane; c < C; c += 32) y[m * C + c] = expf(in[c] - of_row) / sum;
}

void run(const Queue& queue, const View& y, const View& x) {
  const Rows p("softmax/3_warp_per_row", y, x);
  launch(queue, "softmax/3_warp_per_row", dim3(tiles(p.M, kRows)), dim3(kThreads), 0, softmax_kernel, p.y, p.x, p.M,
         p.C);
}

const Rung<run> rung("softmax/3_warp_per_row", "32 lanes share a row: whole sectors, 32 times the threads");

}  // namespace weft::kernels::cuda::softmax_3
