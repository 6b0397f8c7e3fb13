// SPDX-License-Identifier: Apache-2.0
// Unit 8: tiles in shared memory, 4 x 4 elements of c in each thread's registers, on the FP32 units.
#include "weft_ptx.h"

constexpr int kTile = 64, kDepth = 16;

__global__ void product_kernel(const bf16* a, const bf16* b, float* c, int n) {
  __shared__ float as[kTile][kDepth + 1], bs[kDepth][kTile];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  float sum[4][4] = {};
  for (int first = 0; first < n; first += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      as[i / kDepth][i % kDepth] = static_cast<float>(a[(top + i / kDepth) * n + first + i % kDepth]);
      bs[i / kTile][i % kTile] = static_cast<float>(b[(first + i / kTile) * n + left + i % kTile]);
    }
    __syncthreads();
    for (int k = 0; k < kDepth; ++k)
      for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] += as[y + i / 4 * 16][k] * bs[k][x + i % 4 * 16];
    __syncthreads();
  }
  for (int i = 0; i < 16; ++i) c[(top + y + i / 4 * 16) * n + left + x + i % 4 * 16] = sum[i / 4][i % 4];
}

void product(const bf16* a, const bf16* b, float* c, int n) {
  product_kernel<<<dim3(n / kTile, n / kTile), 256>>>(a, b, c, n);
}
