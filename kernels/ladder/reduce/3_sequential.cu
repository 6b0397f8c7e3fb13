// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 3. Sequential addressing: fold the block in halves.
//
//   thread   0   1   2   3 | 4   5   6   7
//            x   x   x   x | x   x   x   x
//            +   +   +   + <------------       s = 4: element t and element t + 4
//            +   +  <-----                     s = 2
//            +  <-                             s = 1
//
// Active threads are the first s, as in step 2, and now their elements are neighbours too: 32 lanes, 32 banks.
//
// Saves: all bank conflicts: 141 wavefronts become 36. Predicted: 150 / 45 = 3.3 times with the store and the last
// read, if shared memory is all that limits (measured by Harris: 2.0 times).
//
// Limit: half of the threads do nothing but load one element, then wait at 9 barriers.

namespace weft::kernels::cuda::reduce_3 {

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float tile[kReduceThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kReduceThreads + t;
  tile[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int s = kReduceThreads / 2; s > 0; s /= 2) {
    if (t < s) tile[t] += tile[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = tile[0];
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/3_sequential", y, x, kReduceThreads, reduce_kernel);
}

const Rung<run> rung("reduce/3_sequential", "fold in halves: neighbours again, no bank conflicts");

}  // namespace weft::kernels::cuda::reduce_3
