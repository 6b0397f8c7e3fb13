// SPDX-License-Identifier: Apache-2.0
constexpr int kRadius = 4, kTile = 32, kSide = kTile + 2 * kRadius;

/// A block of 32 x 8 threads computes 32 x 32 points from a tile with a halo of 4 points on each side.
__global__ void stencil_kernel(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[kSide][kSide];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  for (int i = threadIdx.y * kTile + threadIdx.x; i < kSide * kSide; i += kTile * 8) {
    const int y = top - kRadius + i / kSide, x = left - kRadius + i % kSide;
    const bool inside = y >= 0 && y < rows && x >= 0 && x < columns;
    tile[i / kSide][i % kSide] = inside ? in[y * columns + x] : 0.0f;
  }
  __syncthreads();
  const int x = threadIdx.x + kRadius;
  for (int row = threadIdx.y; row < kTile; row += 8) {
    const int y = row + kRadius;
    float sum = 4 * tile[y][x];
    for (int d = 1; d <= kRadius; ++d)
      sum -= (5 - d) * (tile[y - d][x] + tile[y + d][x] + tile[y][x - d] + tile[y][x + d]);
    if (top + row < rows && left + threadIdx.x < columns) out[(top + row) * columns + left + threadIdx.x] = sum;
  }
}

void stencil(const float* in, float* out, int rows, int columns) {
  stencil_kernel<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in, out, rows, columns);
}
