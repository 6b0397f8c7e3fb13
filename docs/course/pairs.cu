// SPDX-License-Identifier: Apache-2.0
// Unit 4 of the course: a barrier that is missing, and results that are right all the same. docs/course/4_races.md finds it.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void reverse(const int* in, int* out) {
  __shared__ int words[64];
  words[threadIdx.x] = in[threadIdx.x];
  if (BARRIER) __syncthreads();
  out[threadIdx.x] = words[63 - threadIdx.x];
}

__global__ void pairs(const int* in, int* out) {
  __shared__ int words[64];
  words[threadIdx.x] = in[threadIdx.x];
  if (BARRIER) __syncwarp();
  out[threadIdx.x] = words[threadIdx.x ^ 1];
}

int main() {
  int *in, *out, values[64];
  for (int i = 0; i < 64; ++i) values[i] = i;
  cudaMalloc(&in, sizeof(values));
  cudaMalloc(&out, sizeof(values));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  pairs<<<1, 64>>>(in, out);
  cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += values[i] != (i ^ 1);
  std::printf("pairs: %d wrong\n", wrong);
  reverse<<<1, 64>>>(in, out);
  cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost);
  wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += values[i] != 63 - i;
  std::printf("reverse: %d wrong\n", wrong);
  return 0;
}
