// SPDX-License-Identifier: Apache-2.0
// Unit 0 of the course: a first kernel, and an error that only a check shows. docs/course/0_first_kernel.md reads the
// output.
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

#ifndef THREADS
#define THREADS 256
#endif

__global__ void add(const float* a, const float* b, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

/// Prints the error of a call, if any; true: the program must end.
bool failed(const char* call, cudaError_t error) {
  if (error != cudaSuccess) std::printf("%s: %s\n", call, cudaGetErrorString(error));
  return error != cudaSuccess;
}

int main() {
  constexpr int n = 1000;
  const std::vector<float> a(n, 1.0f), b(n, 2.0f);
  std::vector<float> out(n);
  float* device;  // a, b and out, one after the other
  if (failed("cudaMalloc", cudaMalloc(&device, 3 * n * sizeof(float)))) return 1;
  cudaMemcpy(device, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(device + n, b.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  const int blocks = (n + THREADS - 1) / THREADS;
  add<<<blocks, THREADS>>>(device, device + n, device + 2 * n, n);
  if (failed("launch", cudaGetLastError())) return 1;
  if (failed("kernel", cudaDeviceSynchronize())) return 1;
  cudaMemcpy(out.data(), device + 2 * n, n * sizeof(float), cudaMemcpyDeviceToHost);
  int right = 0;
  for (const float value : out) right += value == 3.0f;
  std::printf("%d blocks of %d threads: %d of %d sums are right\n", blocks, THREADS, right, n);
  cudaFree(device);
  return 0;
}
