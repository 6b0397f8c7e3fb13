// SPDX-License-Identifier: Apache-2.0
// The barrier is there, but adding is no single step any more.
__global__ void count_kernel(const float* in, int* out, int n) {
  __shared__ int found;
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  if (i < n && in[i] > 0) found = found + 1;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = found;
}

void count_positive(const float* in, int* out, int n) { count_kernel<<<(n + 255) / 256, 256>>>(in, out, n); }
