// SPDX-License-Identifier: Apache-2.0
// out[i] = a[i] + b[i] for i from 0 to n - 1. All pointers are of the device.

__global__ void add_kernel(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i] + b[i];
}

void add(const float* a, const float* b, float* out, int n) {
  const int threads = 256;
  add_kernel<<<n / threads, threads>>>(a, b, out, n);
}
