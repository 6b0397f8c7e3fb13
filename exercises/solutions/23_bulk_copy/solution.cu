// SPDX-License-Identifier: Apache-2.0
#include "weft_ptx.h"

constexpr int kTile = 1024;

__global__ void tile_norms_kernel(const float* in, float* out, int n) {
  __shared__ alignas(128) float tile[kTile];
  __shared__ float sums[8];
  __shared__ ptx::Barrier barrier;
  const int first = blockIdx.x * kTile, count = min(kTile, n - first), bytes = count * 4;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(&barrier, bytes);
    ptx::bulk_load(tile, in + first, bytes, &barrier);
  }
  ptx::mbarrier_wait(&barrier, 0);
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
