// SPDX-License-Identifier: Apache-2.0
// out[i] = the sum of weight[t] * in[512 t + i] over all tiles t. Right, with a barrier of the block for each tile.
#include "weft_ptx.h"

constexpr int kTile = 512, kThreads = 128, kStages = 2;

__global__ void weighted_sums_kernel(const float* in, const float* weight, float* out, int tiles) {
  __shared__ alignas(128) float tile[kStages][kTile];
  __shared__ ptx::Barrier full[kStages];
  const auto load = [&](int t) {
    ptx::mbarrier_arrive_expect_tx(&full[t % kStages], kTile * 4);
    ptx::bulk_load(tile[t % kStages], in + t * kTile, kTile * 4, &full[t % kStages]);
  };
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) ptx::mbarrier_init(&full[s], 1);
    ptx::mbarrier_init_fence();
    for (int t = 0; t < kStages && t < tiles; ++t) load(t);
  }
  __syncthreads();
  float sum[kTile / kThreads] = {};
  for (int t = 0; t < tiles; ++t) {
    ptx::mbarrier_wait(&full[t % kStages], t / kStages % 2);
    for (int i = 0; i < kTile / kThreads; ++i) sum[i] += weight[t] * tile[t % kStages][i * kThreads + threadIdx.x];
    ptx::fence_proxy_async();  // after the barrier TMA may overwrite values that threads have read
    __syncthreads();
    if (threadIdx.x == 0 && t + kStages < tiles) load(t + kStages);
  }
  for (int i = 0; i < kTile / kThreads; ++i) out[i * kThreads + threadIdx.x] = sum[i];
}

void weighted_sums(const float* in, const float* weight, float* out, int tiles) {
  weighted_sums_kernel<<<1, kThreads>>>(in, weight, out, tiles);
}
