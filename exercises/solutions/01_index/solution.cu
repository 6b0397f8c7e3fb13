// SPDX-License-Identifier: Apache-2.0
__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

void add(const float* a, const float* b, float* out, int n) {
  const int threads = 256;
  add_kernel<<<(n + threads - 1) / threads, threads>>>(a, b, out, n);
}
