// SPDX-License-Identifier: Apache-2.0
// out[t] = the sum of tile t, which is in[256 t] … in[256 t + 255].
#include <cuda_pipeline.h>

constexpr int kTile = 256, kThreads = 64;

/// The sum of a tile in shared memory, by all threads of the block; the result is thread 0's.
__device__ float sum_of(const float* tile, float* sums) {
  float value = 0;
  for (int i = threadIdx.x; i < kTile; i += kThreads) value += tile[i];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  return sums[0] + sums[1];
}

__global__ void tile_sums_kernel(const float* in, float* out, int tiles) {
  __shared__ float tile[kTile], sums[2];
  for (int t = 0; t < tiles; ++t) {
    for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] = in[t * kTile + i];
    __syncthreads();
    const float sum = sum_of(tile, sums);
    if (threadIdx.x == 0) out[t] = sum;
    __syncthreads();
  }
}

void tile_sums(const float* in, float* out, int tiles) { tile_sums_kernel<<<1, kThreads>>>(in, out, tiles); }
