// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 5. Warp shuffle: the lanes of a warp hand each other their registers.
//
//   __shfl_xor_sync(mask, value, d) gives lane l the value of lane l ^ d:
//
//     d = 16   0 <-> 16, 1 <-> 17 …      after 5 exchanges all 32 lanes hold the sum of the warp,
//     d = 8    0 <->  8, 1 <->  9 …      without shared memory and without a barrier
//     d = 4, 2, 1
//
//   block:   8 warps -> 8 sums in shared memory -> one barrier -> every warp could add them; the first one does
//
// Saves: shared memory requests (3 per active warp and round, some 40 per block) become 8 stores and 1 load; 9 barriers
// become 1. Predicted: the tree's time all but vanishes; one load instruction per 2 elements remains.
// (Harris unrolls the last warp instead, 1.8 times; in 2007 there were no shuffles.)
//
// Limit: memory at last, but each thread asks for only 8 bytes in its life: 512 elements per block make many short
// blocks, whose start and end cost as much as their work.

namespace weft::kernels::cuda::reduce_5 {

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ float warp_total(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float of_warp[kReduceThreads / 32];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * 2 * kReduceThreads + t;
  const float sum = warp_total((i < n ? in[i] : 0) + (i + kReduceThreads < n ? in[i + kReduceThreads] : 0));
  if (t % 32 == 0) of_warp[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    const float total = warp_total(t < kReduceThreads / 32 ? of_warp[t] : 0);
    if (t == 0) out[blockIdx.x] = total;
  }
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/5_warp_shuffle", y, x, 2 * kReduceThreads, reduce_kernel);
}

const Rung<run> rung("reduce/5_warp_shuffle", "lanes exchange registers: one barrier instead of nine");

}  // namespace weft::kernels::cuda::reduce_5
