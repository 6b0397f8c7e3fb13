// SPDX-License-Identifier: Apache-2.0
// A planted race: the barrier between writing and reading the neighbour's word is missing. cli.py looks for its line.
#include <cuda_runtime.h>

__global__ void shift(int* out) {
  __shared__ int words[64];
  words[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = words[(threadIdx.x + 32) % 64];  // races
}

int main(int argc, char**) {
  int* out;
  cudaMalloc(&out, 64 * sizeof(int));
  shift<<<1, 64>>>(argc == 2 ? out + 1 : out);  // with an argument: past the end
  return cudaDeviceSynchronize() != cudaSuccess;
}
