// SPDX-License-Identifier: Apache-2.0
// Unit 1 of the course: the same work, decided by lane and decided by warp. docs/course/1_warps.md reads the counts of each line.
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

__device__ float heavy(float x) {
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
    x = x * 1.5f + 1.0f;
  }
  return x;
}

__global__ void by_lane(float* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 2 == 0) {
    values[i] = heavy(values[i]);
  }
}

__global__ void by_warp(float* values) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x / 32 % 2 == 0) {
    values[i] = heavy(values[i]);
  }
}

int main() {
  constexpr int n = 256;
  std::vector<float> values(n, 1.0f);
  float* device;
  cudaMalloc(&device, n * sizeof(float));
  cudaMemcpy(device, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  by_lane<<<1, n>>>(device);
  by_warp<<<1, n>>>(device);
  cudaMemcpy(values.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
  int changed = 0;
  for (const float value : values) changed += value != 1.0f;
  std::printf("%d of %d values changed\n", changed, n);
  return 0;
}
