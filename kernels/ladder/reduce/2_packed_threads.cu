// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 2. Packed threads: the same additions, done by the first threads of the block.
//
//   s = 1    thread 0: 0 + 1   thread 1: 2 + 3   thread 2: 4 + 5 …      active: t < 128, t < 64, t < 32 …
//   s = 2    thread 0: 0 + 2   thread 1: 4 + 6   …
//
// The tree is that of step 1. Only the mapping changed: thread t takes the pair at 2 s t, so that active threads fill
// whole warps and the other warps skip the round altogether: no divergence.
//
// Saves: warp instructions. Warps per round 8 8 8 8 8 4 2 1 (47) become 4 2 1 1 1 1 1 1 (12): 3.9 times fewer. Measured
// by Harris: 2.3 times in all.
//
// Limit: bank conflicts, new here. In round s the lanes of a warp are 2 s words apart, so up to 2 s of them share a
// bank: 2, 4, 8, 16, 16, 8 … wavefronts for one request. The 36 requests of a tree take 141 wavefronts, to the last one
// as many as the 141 requests of step 1 did. The instructions are gone, their time in shared memory is not.

namespace weft::kernels::cuda::reduce_2 {

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float tile[kReduceThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kReduceThreads + t;
  tile[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int s = 1; s < kReduceThreads; s *= 2) {
    if (2 * s * t < kReduceThreads) tile[2 * s * t] += tile[2 * s * t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = tile[0];
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/2_packed_threads", y, x, kReduceThreads, reduce_kernel);
}

const Rung<run> rung("reduce/2_packed_threads", "active threads fill whole warps");

}  // namespace weft::kernels::cuda::reduce_2
