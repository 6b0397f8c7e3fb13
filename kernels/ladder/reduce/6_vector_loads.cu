// SPDX-License-Identifier: Apache-2.0
#include "kernels/ladder/reduce/reduce.cuh"

// 6. Vector loads, and many of them: a grid that fills the GPU once, each thread strides through the input 16 bytes at
// a time.
//
//   in   [block 0 |block 1 | … |block G-1][block 0 |block 1 | …            G blocks x 256 threads x 4 elements
//         4 4 4 4  4 4 4 4                 4 4 4 4
//
// Saves: a quarter of the load instructions; all trees but G; the second launch adds G sums, not n / 512. A memory of
// 3.35 TB/s with a latency of some 600 ns needs 2 MB in flight at any time (Little's law): 132 SMs x
// 2048 threads x 16 bytes = 4.3 MB with one load per thread, while 4 bytes each would be too few. The loop has no
// barrier, so loads of several turns overlap. Predicted: memory bound: 92% of the data sheet's bandwidth. Others: 3240
// GB/s on an H100, 97% of 3.35 TB/s (github.com/pranjalssh/fast.cu); Harris: 1.4 times over full unrolling.
//
// Limit: memory. For a short input, the two launches.

namespace weft::kernels::cuda::reduce_6 {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int64_t kBlocks = 1024;

__device__ float warp_total(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kAllLanes, value, distance);
  return value;
}

__global__ void reduce_kernel(float* out, const float* in, int64_t n) {
  __shared__ float of_warp[kReduceThreads / 32];
  const int t = static_cast<int>(threadIdx.x);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kReduceThreads + t;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kReduceThreads;
  float sum = 0;
  for (int64_t i = first; i < n / 4; i += stride) {
    const auto x = Vec<float, 4>::load(in + 4 * i);
    sum += (x[0] + x[1]) + (x[2] + x[3]);
  }
  if (n / 4 * 4 + first < n) sum += in[n / 4 * 4 + first];  // the last 0 to 3
  sum = warp_total(sum);
  if (t % 32 == 0) of_warp[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    const float total = warp_total(t < kReduceThreads / 32 ? of_warp[t] : 0);
    if (t == 0) out[blockIdx.x] = total;
  }
}

void run(const Queue& queue, const View& y, const View& x) {
  reduce_in_rounds(queue, "reduce/6_vector_loads", y, x, 16 * kReduceThreads, reduce_kernel, kBlocks);
}

const Rung<run> rung("reduce/6_vector_loads", "16 bytes a load, many loads a thread, few blocks");

}  // namespace weft::kernels::cuda::reduce_6
