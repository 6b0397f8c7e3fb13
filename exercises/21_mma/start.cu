// SPDX-License-Identifier: Apache-2.0
// d = a b of `count` products, [16 x 8] = [16 x 16] [16 x 8]; all in row order, one after the other.
#include "weft_ptx.h"

__global__ void products_kernel(const bf16* a, const bf16* b, float* d, int count) {
  const int product = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (product >= count) return;
  a += product * 256, b += product * 128, d += product * 128;
  for (int i = lane; i < 128; i += 32) {
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += static_cast<float>(a[i / 8 * 16 + k]) * static_cast<float>(b[k * 8 + i % 8]);
    d[i] = sum;
  }
}

void products(const bf16* a, const bf16* b, float* d, int count) {
  products_kernel<<<(count + 3) / 4, 128>>>(a, b, d, count);
}
