// SPDX-License-Identifier: Apache-2.0
__global__ void softmax_kernel(const float* in, float* out, int rows, int columns) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;  // whole warps
  float most = -INFINITY, sum = 0;
  for (int c = lane; c < columns; c += 32) most = fmaxf(most, in[row * columns + c]);
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, step));
  for (int c = lane; c < columns; c += 32) sum += expf(in[row * columns + c] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  for (int c = lane; c < columns; c += 32) out[row * columns + c] = expf(in[row * columns + c] - most) / sum;
}

void softmax(const float* in, float* out, int rows, int columns) {
  softmax_kernel<<<(rows + 3) / 4, 128>>>(in, out, rows, columns);
}
