// SPDX-License-Identifier: Apache-2.0
#include "tests/simt/collectives.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace weft::kernels::WEFT_DEVICE {

namespace {

__global__ void collectives_kernel(int* out, const int* in) {
  const int lane = static_cast<int>(threadIdx.x);
  const int v = in[lane];
  const unsigned u = static_cast<unsigned>(v);
  int row = 0;
  auto put = [&](int value) { out[32 * row++ + lane] = value; };
  put(__shfl_sync(kFullWarp, v, 5));
  put(__shfl_sync(kFullWarp, v, lane + 3));
  put(__shfl_sync(kFullWarp, v, 1, 8));
  put(__shfl_up_sync(kFullWarp, v, 3));
  put(__shfl_up_sync(kFullWarp, v, 3, 16));
  put(__shfl_down_sync(kFullWarp, v, 7));
  put(__shfl_down_sync(kFullWarp, v, 7, 8));
  put(__shfl_xor_sync(kFullWarp, v, 9));
  put(__shfl_xor_sync(kFullWarp, v, 9, 8));
  put(static_cast<int>(__shfl_xor_sync(kFullWarp, static_cast<double>(v), 1)));
  put(static_cast<int>(__shfl_xor_sync(kFullWarp, static_cast<long long>(v) << 32, 1) >> 32));
  put(static_cast<int>(__ballot_sync(kFullWarp, v & 1)));
  put(__any_sync(kFullWarp, v == in[7]));
  put(__all_sync(kFullWarp, v == in[7]));
  put(static_cast<int>(__match_any_sync(kFullWarp, v & 3)));
  int same = -1;
  put(static_cast<int>(__match_all_sync(kFullWarp, v & 3, &same)));
  put(same);
  put(static_cast<int>(__match_all_sync(kFullWarp, v & 0, &same)));
  put(same);
  put(__reduce_add_sync(kFullWarp, v));
  put(__reduce_min_sync(kFullWarp, v));
  put(__reduce_max_sync(kFullWarp, v));
  put(static_cast<int>(__reduce_min_sync(kFullWarp, u)));
  put(static_cast<int>(__reduce_and_sync(kFullWarp, u)));
  put(static_cast<int>(__reduce_or_sync(kFullWarp, u)));
  put(static_cast<int>(__reduce_xor_sync(kFullWarp, u)));
}

__global__ void half_warps_kernel(float* out, const float* in) {
  const unsigned t = threadIdx.x;
  float value = in[t];
  // The lower halves pass through the loop at other times than the upper ones.
  for (unsigned turn = 0; turn < 2; ++turn) {
    if ((t / 16) % 2 != turn) continue;
    const unsigned mask = turn == 0 ? 0x0000ffffu : 0xffff0000u;
    for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(mask, value, distance);
    __syncwarp(mask);
  }
  __syncwarp();
  out[t] = value;
}

__global__ void block_reductions_kernel(double* sums, float* maxima, int* votes, const float* x, int n) {
  double sum = 0;
  float highest = -INFINITY;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    const float value = x[static_cast<int>(blockIdx.x) * n + i];
    sum += value;
    highest = highest > value ? highest : value;
  }
  sum = block_sum(sum);
  highest = block_max(highest, -INFINITY);
  const int thread = static_cast<int>(threadIdx.x);
  const int count = __syncthreads_count(thread % 3 == 0);
  const int all = __syncthreads_and(thread >= 0) + 2 * __syncthreads_and(thread > 0);
  const int any = __syncthreads_or(thread == 0) + 2 * __syncthreads_or(thread < 0);
  if (thread == static_cast<int>(blockDim.x) - 1) {
    sums[blockIdx.x] = sum;
    maxima[blockIdx.x] = highest;
    votes[blockIdx.x] = count * 16 + all * 4 + any;
  }
}

}  // namespace

void collectives(const Queue& queue, int* out, const int* in) {
  launch(queue, "collectives", Grid{1}, Block{32}, 0, collectives_kernel, out, in);
}
void half_warps(const Queue& queue, float* out, const float* in, unsigned threads) {
  launch(queue, "half_warps", Grid{1}, Block{threads}, 0, half_warps_kernel, out, in);
}
void block_reductions(const Queue& queue, double* sums, float* maxima, int* votes, const float* x, int n,
                      unsigned blocks, unsigned threads) {
  launch(queue, "block_reductions", Grid{blocks}, Block{threads}, 0, block_reductions_kernel, sums, maxima, votes, x,
         n);
}

}  // namespace weft::kernels::WEFT_DEVICE
