// SPDX-License-Identifier: Apache-2.0
// The softmax of each row of `columns` values.

__global__ void softmax_kernel(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int c = 0; c < columns; ++c) sum += expf(in[row * columns + c]);
  for (int c = 0; c < columns; ++c) out[row * columns + c] = expf(in[row * columns + c]) / sum;
}

void softmax(const float* in, float* out, int rows, int columns) {
  softmax_kernel<<<(rows + 127) / 128, 128>>>(in, out, rows, columns);
}
