// SPDX-License-Identifier: Apache-2.0
// A library that has CUDA's runtime inside, as nvcc links it by default.
#include <cuda_runtime.h>
#ifdef WITH_CUBLAS
#include <cublas_v2.h>
#endif

namespace {

__global__ void count_kernel(float* out) { out[threadIdx.x] = static_cast<float>(threadIdx.x); }

}  // namespace

extern "C" int use_wrong_device() { return cudaSetDevice(-1) != cudaSuccess; }
extern "C" int ask_last_error() { return cudaGetLastError() != cudaSuccess; }

/// The sum of squares of 0 to 31 by a kernel and cuBLAS; 0: an error.
extern "C" int squares() {
  float* memory = nullptr;
  float host[32], sum = 0;
  if (cudaMalloc(&memory, sizeof(host)) != cudaSuccess) return 0;
  count_kernel<<<1, 32>>>(memory);
#ifdef WITH_CUBLAS
  cublasHandle_t handle = nullptr;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS || cublasSdot(handle, 32, memory, 1, memory, 1, &sum) != CUBLAS_STATUS_SUCCESS) return 0;
  cublasDestroy(handle);
#endif
  if (cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost) != cudaSuccess) return 0;
#ifndef WITH_CUBLAS
  for (const float x : host) sum += x * x;
#endif
  cudaFree(memory);
  return static_cast<int>(sum);
}
