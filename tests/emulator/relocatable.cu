// SPDX-License-Identifier: Apache-2.0
// Relocatable device code (nvcc -rdc=true): a kernel of this object calls a function of relocatable_other.cu, and both have a
// static function of one name.
#include <cuda_runtime.h>

#include <cstdio>

extern __device__ int elsewhere[32];
__device__ int twice_and(int x);

static __device__ __noinline__ int mine() { return 1; }

__global__ void caller(int* out) { out[threadIdx.x] = twice_and(static_cast<int>(threadIdx.x)) + elsewhere[threadIdx.x] + mine(); }

int main() {
  int *out = nullptr, got[32] = {};
  if (cudaMalloc(&out, sizeof(got)) != cudaSuccess) return 1;
  caller<<<1, 32>>>(out);
  const cudaError_t launched = cudaGetLastError();
  if (launched != cudaSuccess || cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorName(launched));
    return 1;
  }
  for (int i = 0; i < 32; ++i)
    if (got[i] != 2 * i + 100 + 7 + 1) {
      std::printf("%d: %d\n", i, got[i]);
      return 1;
    }
  std::printf("right\n");
  return 0;
}
