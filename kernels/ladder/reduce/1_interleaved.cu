// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 1. Interleaved: a tree of additions in shared memory, neighbours first.
//
//   thread   0   1   2   3   4   5   6   7           a block adds 256 elements in 8 rounds and writes
//            x   x   x   x   x   x   x   x           one sum; the sums are added by the next launch
//            |  /    |  /    |  /    |  /
//   s = 1    +       +       +       +               active: t % 2 == 0
//            |      /        |      /
//   s = 2    +               +                       active: t % 4 == 0
//            |              /
//   s = 4    +                                       active: t % 8 == 0
//
// The order of the additions is given by the indices alone: the same bits in every run. All steps keep that.
//
// Cost: the active threads are spread over all warps. In round s = 16 each of the 8 warps runs with one active lane: 8
// warp instructions for 8 additions. Warps per round: 8 8 8 8 8 4 2 1, in all 47, each with two reads and a write of
// shared memory: 141 wavefronts, where the 255 additions would fit into 8 + 4 warps. And each round takes a division (t
// % 2s).
//
// Figures of others: 2.1 GB/s of a G80's 86 (M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007, 4 Mi
// elements; the gains below in parentheses are from the same table. Today's GPUs hide more of it).
//
// Limit: instructions, not memory.

namespace weft::kernels::cuda::reduce_1 {

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float tile[kReduceThreads];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kReduceThreads + t;
  tile[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int s = 1; s < kReduceThreads; s *= 2) {
    if (t % (2 * s) == 0) tile[t] += tile[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = tile[0];
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/1_interleaved", y, x, kReduceThreads, reduce_kernel);
}

const Rung<run> rung("reduce/1_interleaved", "a tree of additions; active threads spread over all warps");

}  // namespace weft::kernels::cuda::reduce_1
