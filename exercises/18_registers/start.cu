// SPDX-License-Identifier: Apache-2.0
// c = a b, of n x n matrices in row order; n is a multiple of 64.

constexpr int kTile = 32;

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
  float sum = 0;
  for (int first = 0; first < n; first += kTile) {
    as[y][x] = a[row * n + first + x];
    bs[y][x] = b[(first + y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

void matmul(const float* a, const float* b, float* c, int n) {
  matmul_kernel<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(a, b, c, n);
}
