// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 4. Add while loading: the first round of the tree happens on the way in.
//
//   in      [ 0 … 255 | 256 … 511 ]       thread t loads elements t and t + 256 and keeps their sum:
//              \         /                twice the elements per block, half the blocks, the same tree
//   tile    [ 0 … 255 ]
//
// Saves: half of all trees, with their barriers and shared memory. Two loads per thread are on their way at the same
// time. Predicted: 2 times where the tree limits (measured by Harris: 1.8 times).
//
// Limit: the tree still takes 9 barriers for 512 elements. In the last 5 rounds one warp works and 7 wait.

namespace weft::kernels::cuda::reduce_4 {

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float tile[kReduceThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 2 * kReduceThreads + t;
  tile[t] = (i < n ? in[i] : 0) + (i + kReduceThreads < n ? in[i + kReduceThreads] : 0);
  __syncthreads();
  for (int s = kReduceThreads / 2; s > 0; s /= 2) {
    if (t < s) tile[t] += tile[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = tile[0];
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/4_add_while_loading", y, x, 2 * kReduceThreads, reduce_kernel);
}

const Rung<run> rung("reduce/4_add_while_loading", "the first addition happens on the way in");

}  // namespace weft::kernels::cuda::reduce_4
