// SPDX-License-Identifier: Apache-2.0
// out[x * rows + y] = in[y * columns + x], of a matrix of any size.

__global__ void transpose_kernel(const float* in, float* out, int rows, int columns) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < columns && y < rows) out[x * rows + y] = in[y * columns + x];
}

void transpose(const float* in, float* out, int rows, int columns) {
  const dim3 threads(32, 8);
  transpose_kernel<<<dim3((columns + 31) / 32, (rows + 7) / 8), threads>>>(in, out, rows, columns);
}
