// SPDX-License-Identifier: Apache-2.0
// c = a b, of n x n matrices in row order; a and b in bf16, c and the sums in f32; n is a multiple of 128.
#include "weft_ptx.h"

__global__ void product_kernel(const bf16* a, const bf16* b, float* c, int n) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += static_cast<float>(a[row * n + k]) * static_cast<float>(b[k * n + column]);
  c[row * n + column] = sum;
}

void product(const bf16* a, const bf16* b, float* c, int n) {
  product_kernel<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, b, c, n);
}
