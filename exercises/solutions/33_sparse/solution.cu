// SPDX-License-Identifier: Apache-2.0
/// A warp per row: its lanes read neighbouring entries, and add their sums by shuffles.
__global__ void multiply_kernel(const int* offsets, const int* columns, const float* values, const float* x, float* y,
                                int rows) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;  // the whole warp
  const int end = offsets[row + 1];
  float sum = 0;
  for (int e = offsets[row] + lane; e < end; e += 32) sum += values[e] * x[columns[e]];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
  if (lane == 0) y[row] = sum;
}

void multiply(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  multiply_kernel<<<(rows + 3) / 4, 128>>>(offsets, columns, values, x, y, rows);
}
