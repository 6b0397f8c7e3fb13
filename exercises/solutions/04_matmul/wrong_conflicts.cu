// SPDX-License-Identifier: Apache-2.0
// The tile of b is kept transposed: columns meet in one bank.
constexpr int kTile = 32;

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float as[kTile][kTile], bs[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * kTile + x, row = blockIdx.y * kTile + y;
  float sum = 0;
  for (int first = 0; first < n; first += kTile) {
    as[y][x] = row < n && first + x < n ? a[row * n + first + x] : 0.0f;
    bs[x][y] = first + y < n && column < n ? b[(first + y) * n + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += as[y][k] * bs[x][k];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

void matmul(const float* a, const float* b, float* c, int n) {
  const int blocks = (n + kTile - 1) / kTile;
  matmul_kernel<<<dim3(blocks, blocks), dim3(kTile, kTile)>>>(a, b, c, n);
}
