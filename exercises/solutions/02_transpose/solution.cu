// SPDX-License-Identifier: Apache-2.0
__global__ void transpose_kernel(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int j = threadIdx.y; j < 32; j += 8)
    if (top + j < rows && left + threadIdx.x < columns) tile[j][threadIdx.x] = in[(top + j) * columns + left + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8)
    if (left + j < columns && top + threadIdx.x < rows) out[(left + j) * rows + top + threadIdx.x] = tile[threadIdx.x][j];
}

void transpose(const float* in, float* out, int rows, int columns) {
  transpose_kernel<<<dim3((columns + 31) / 32, (rows + 31) / 32), dim3(32, 8)>>>(in, out, rows, columns);
}
