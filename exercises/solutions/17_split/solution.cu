// SPDX-License-Identifier: Apache-2.0
constexpr int kRows = 64;  // rows of a block of 32 x 8 threads

__global__ void column_sums_kernel(const float* in, float* out, int rows, int columns) {
  __shared__ float sums[8][32];
  const int column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * kRows;
  float sum = 0;
  for (int row = first + threadIdx.y; row < min(first + kRows, rows); row += 8)
    if (column < columns) sum += in[row * columns + column];
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int y = 1; y < 8; ++y) sum += sums[y][threadIdx.x];
  atomicAdd(&out[column], sum);
}

void column_sums(const float* in, float* out, int rows, int columns) {
  cudaMemset(out, 0, columns * sizeof(float));
  column_sums_kernel<<<dim3((columns + 31) / 32, (rows + kRows - 1) / kRows), dim3(32, 8)>>>(in, out, rows, columns);
}
