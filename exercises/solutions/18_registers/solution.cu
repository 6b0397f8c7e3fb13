// SPDX-License-Identifier: Apache-2.0
constexpr int kTile = 64, kDepth = 16;

__global__ void matmul_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float as[kTile][kDepth + 1], bs[kDepth][kTile];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  float sum[4][4] = {};  // rows y, y + 16, …, columns x, x + 16, …
  for (int first = 0; first < n; first += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      as[i / kDepth][i % kDepth] = a[(top + i / kDepth) * n + first + i % kDepth];
      bs[i / kTile][i % kTile] = b[(first + i / kTile) * n + left + i % kTile];
    }
    __syncthreads();
    for (int k = 0; k < kDepth; ++k) {
      float left_of[4], right_of[4];
      for (int i = 0; i < 4; ++i) left_of[i] = as[y + 16 * i][k];
      for (int j = 0; j < 4; ++j) right_of[j] = bs[k][x + 16 * j];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += left_of[i] * right_of[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) c[(top + y + 16 * i) * n + left + x + 16 * j] = sum[i][j];
}

void matmul(const float* a, const float* b, float* c, int n) {
  matmul_kernel<<<dim3(n / kTile, n / kTile), 256>>>(a, b, c, n);
}
