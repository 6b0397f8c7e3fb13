// SPDX-License-Identifier: Apache-2.0
// Unit 5 of the course: the sum of a block's numbers, in four ways. docs/course/5_reductions.md reads the counts of each line.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kThreads = 256;

__global__ void neighbours(const float* in, float* out) {
  __shared__ float sum[kThreads];
  const unsigned t = threadIdx.x;
  sum[t] = in[blockIdx.x * kThreads + t];
  __syncthreads();
#pragma unroll 1
  for (unsigned step = 1; step < kThreads; step *= 2) {
    if (t % (2 * step) == 0) {
      sum[t] += sum[t + step];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sum[0];
}

__global__ void packed(const float* in, float* out) {
  __shared__ float sum[kThreads];
  const unsigned t = threadIdx.x;
  sum[t] = in[blockIdx.x * kThreads + t];
  __syncthreads();
#pragma unroll 1
  for (unsigned step = 1; step < kThreads; step *= 2) {
    const unsigned i = 2 * step * t;
    if (i < kThreads) {
      sum[i] += sum[i + step];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sum[0];
}

__global__ void halves(const float* in, float* out) {
  __shared__ float sum[kThreads];
  const unsigned t = threadIdx.x;
  sum[t] = in[blockIdx.x * kThreads + t];
  __syncthreads();
#pragma unroll 1
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    if (t < step) {
      sum[t] += sum[t + step];
    }
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sum[0];
}

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
  return value;
}

__global__ void shuffles(const float* in, float* out) {
  __shared__ float sums[kThreads / 32];
  const unsigned t = threadIdx.x;
  const float value = warp_sum(in[blockIdx.x * kThreads + t]);
  if (t % 32 == 0) {
    sums[t / 32] = value;
  }
  __syncthreads();
  if (t < 32) {
    const float all = warp_sum(t < kThreads / 32 ? sums[t] : 0.0f);
    if (t == 0) out[blockIdx.x] = all;
  }
}

int main() {
  constexpr int blocks = 4, n = blocks * kThreads;
  float values[n], sums[blocks], *in, *out;
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i % 7);
  cudaMalloc(&in, sizeof(values));
  cudaMalloc(&out, sizeof(sums));
  cudaMemcpy(in, values, sizeof(values), cudaMemcpyHostToDevice);
  int wrong = 0;
  for (int version = 0; version < 4; ++version) {
    if (version == 0) neighbours<<<blocks, kThreads>>>(in, out);
    if (version == 1) packed<<<blocks, kThreads>>>(in, out);
    if (version == 2) halves<<<blocks, kThreads>>>(in, out);
    if (version == 3) shuffles<<<blocks, kThreads>>>(in, out);
    cudaMemcpy(sums, out, sizeof(sums), cudaMemcpyDeviceToHost);
    for (int b = 0; b < blocks; ++b) {
      float expected = 0;
      for (int i = 0; i < kThreads; ++i) expected += values[b * kThreads + i];
      wrong += sums[b] != expected;
    }
  }
  std::printf("%d of %d sums wrong\n", wrong, 4 * blocks);
  return wrong;
}
