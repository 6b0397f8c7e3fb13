// SPDX-License-Identifier: Apache-2.0
// c = a b, of n x n matrices in row order, of any n.

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

void matmul(const float* a, const float* b, float* c, int n) {
  const int blocks = (n + 31) / 32;
  matmul_kernel<<<dim3(blocks, blocks), dim3(32, 32)>>>(a, b, c, n);
}
