// SPDX-License-Identifier: Apache-2.0
// out[b] = how many of in[256 b] … in[256 b + 255] are above 0; the last block may have fewer. This kernel has a bug.

__global__ void count_kernel(const float* in, int* out, int n) {
  __shared__ int found;
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (threadIdx.x == 0) found = 0;
  if (i < n && in[i] > 0) atomicAdd(&found, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = found;
}

void count_positive(const float* in, int* out, int n) { count_kernel<<<(n + 255) / 256, 256>>>(in, out, n); }
