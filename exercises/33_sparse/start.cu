// SPDX-License-Identifier: Apache-2.0
// y = A x of a sparse matrix (CSR): row r has the entries offsets[r] to offsets[r + 1] - 1 of `columns` and `values`.

__global__ void multiply_kernel(const int* offsets, const int* columns, const float* values, const float* x, float* y,
                                int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int e = offsets[row]; e < offsets[row + 1]; ++e) sum += values[e] * x[columns[e]];
  y[row] = sum;
}

void multiply(const int* offsets, const int* columns, const float* values, const float* x, float* y, int rows) {
  multiply_kernel<<<(rows + 127) / 128, 128>>>(offsets, columns, values, x, y, rows);
}
