// SPDX-License-Identifier: Apache-2.0
// out[t] = the sum of the squares of in[1024 t] … in[1024 t + 1023], of n numbers in all; n is a multiple of 4.
#include "weft_ptx.h"

constexpr int kTile = 1024;

__global__ void tile_norms_kernel(const float* in, float* out, int n) {
  __shared__ alignas(128) float tile[kTile];
  __shared__ float sums[8];
  const int first = blockIdx.x * kTile, count = min(kTile, n - first);
  for (int i = threadIdx.x; i < count; i += 256) tile[i] = in[first + i];
  __syncthreads();
  float value = 0;
  for (int i = threadIdx.x; i < count; i += 256) value += tile[i] * tile[i];
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < 8; ++w) value += sums[w];
  out[blockIdx.x] = value;
}

void tile_norms(const float* in, float* out, int n) { tile_norms_kernel<<<(n + kTile - 1) / kTile, 256>>>(in, out, n); }
