// SPDX-License-Identifier: Apache-2.0
// out[c] = the sum of in[r][c] over all rows r.

__global__ void column_sums_kernel(const float* in, float* out, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += in[row * columns + column];
  out[column] = sum;
}

void column_sums(const float* in, float* out, int rows, int columns) {
  column_sums_kernel<<<(columns + 127) / 128, 128>>>(in, out, rows, columns);
}
