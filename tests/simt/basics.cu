// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch.cuh"
#include "tests/simt/basics.h"

namespace weft::kernels::WEFT_DEVICE {

namespace {

__global__ void indices_kernel(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = static_cast<int>(block * 10000 + thread);
}

template <class T>
__global__ void scale_kernel(T* y, const T* x, T factor, int64_t n) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
    y[i] = T(float(x[i]) * float(factor));
}

/// Each block reverses its part through shared memory.
__global__ void reverse_kernel(float* y, const float* x) {
  __shared__ float fixed[256];
  WEFT_DYNAMIC_SHARED(float, dynamic);
  const unsigned t = threadIdx.x, n = blockDim.x;
  fixed[t] = x[blockIdx.x * n + t];
  __syncthreads();
  dynamic[t] = fixed[n - 1 - t];
  __syncthreads();
  y[blockIdx.x * n + t] = dynamic[t];
}

__global__ void histogram_kernel(int* bins, float* sum, const int* keys, int n) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    atomicAdd(&local[keys[i]], 1);
    atomicAdd(sum, 1.0f);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

}  // namespace

void indices(const Queue& queue, int* out, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz) {
  launch(queue, "indices", Grid{gx, gy, gz}, Block{bx, by, bz}, 0, indices_kernel, out);
}

void scale(const Queue& queue, const View& y, const View& x, float factor) {
  with_dtype<float, bf16, f16>(x.dtype, "scale", [&]<class T>() {
    launch(queue, "scale", Grid{blocks_for(x.numel(), 256)}, Block{256}, 0, scale_kernel<T>, y.as<T>(),
           static_cast<const T*>(x.as<T>()), T(factor), x.numel());
  });
}

void reverse(const Queue& queue, float* y, const float* x, unsigned blocks, unsigned threads) {
  launch(queue, "reverse", Grid{blocks}, Block{threads}, threads * sizeof(float), reverse_kernel, y, x);
}

void histogram(const Queue& queue, int* bins, float* sum, const int* keys, int n) {
  launch(queue, "histogram", Grid{blocks_for(n, 128)}, Block{128}, 0, histogram_kernel, bins, sum, keys, n);
}

}  // namespace weft::kernels::WEFT_DEVICE
