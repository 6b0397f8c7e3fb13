// SPDX-License-Identifier: Apache-2.0
// out holds those of n numbers that are above 0, in any order; *count is how many.

__global__ void compact_kernel(const float* in, float* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[atomicAdd(count, 1)] = in[i];
}

void compact(const float* in, float* out, int* count, int n) {
  cudaMemset(count, 0, sizeof(int));
  compact_kernel<<<(n + 255) / 256, 256>>>(in, out, count, n);
}
