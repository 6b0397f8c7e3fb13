// SPDX-License-Identifier: Apache-2.0
#include "weft_ptx.h"

constexpr int kTile = 512, kConsumers = 128, kStages = 2;

__global__ void weighted_sums_kernel(const float* in, const float* weight, float* out, int tiles) {
  __shared__ alignas(128) float tile[kStages][kTile];
  __shared__ ptx::Barrier full[kStages], empty[kStages];
  const int thread = threadIdx.x;
  if (thread == 0) {
    for (int s = 0; s < kStages; ++s) {
      ptx::mbarrier_init(&full[s], 1);
      ptx::mbarrier_init(&empty[s], kConsumers);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (thread >= kConsumers) {  // the last warp
    for (int t = 0; thread == kConsumers && t < tiles; ++t) {
      const int s = t % kStages;
      ptx::mbarrier_wait(&empty[s], (t / kStages + 1) % 2);
      ptx::mbarrier_arrive_expect_tx(&full[s], kTile * 4);
      ptx::bulk_load(tile[s], in + t * kTile, kTile * 4, &full[s]);
    }
    return;
  }
  float sum[kTile / kConsumers] = {};
  for (int t = 0; t < tiles; ++t) {
    const int s = t % kStages;
    ptx::mbarrier_wait(&full[s], t / kStages % 2);
    for (int i = 0; i < kTile / kConsumers; ++i) sum[i] += weight[t] * tile[s][i * kConsumers + thread];
    ptx::fence_proxy_async();  // after the barrier TMA may overwrite values that threads have read
    ptx::mbarrier_arrive(&empty[s]);
  }
  for (int i = 0; i < kTile / kConsumers; ++i) out[i * kConsumers + thread] = sum[i];
}

void weighted_sums(const float* in, const float* weight, float* out, int tiles) {
  weighted_sums_kernel<<<1, kConsumers + 32>>>(in, weight, out, tiles);
}
