// SPDX-License-Identifier: Apache-2.0
// out[t] = the largest of in[256 t] … in[256 t + 255]. This kernel has a bug.
#include <cuda_pipeline.h>

constexpr int kTile = 256, kThreads = 64, kStages = 3;

__device__ void begin(float* tile, const float* in) {
  __pipeline_memcpy_async(&tile[4 * threadIdx.x], &in[4 * threadIdx.x], 16);
}

/// The largest number of a tile in shared memory, by all threads of the block; the result is thread 0's.
__device__ float max_of(const float* tile, float* most) {
  float value = -INFINITY;
  for (int i = threadIdx.x; i < kTile; i += kThreads) value = fmaxf(value, tile[i]);
  for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_down_sync(0xffffffff, value, step));
  if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = value;
  __syncthreads();
  return fmaxf(most[0], most[1]);
}

__global__ void tile_max_kernel(const float* in, float* out, int tiles) {
  __shared__ alignas(16) float tile[kStages][kTile];
  __shared__ float most[2];
  for (int t = 0; t < kStages - 1 && t < tiles; ++t) {
    begin(tile[t], in + t * kTile);
    __pipeline_commit();
  }
  for (int t = 0; t < tiles; ++t) {
    if (t + 2 < tiles) {
      begin(tile[(t + 2) % kStages], in + (t + 2) * kTile);
      __pipeline_commit();
    }
    __pipeline_wait_prior(2);
    __syncthreads();
    const float largest = max_of(tile[t % kStages], most);
    if (threadIdx.x == 0) out[t] = largest;
    __syncthreads();
  }
}

void tile_max(const float* in, float* out, int tiles) { tile_max_kernel<<<1, kThreads>>>(in, out, tiles); }
