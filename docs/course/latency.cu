// SPDX-License-Identifier: Apache-2.0
// Unit 7 of the course: the same loads, with more and fewer of them under way. docs/course/7_latency.md reads the
// times.
#include <cuda_runtime.h>
#include <cstdio>

#ifndef BLOCKS
#define BLOCKS 132 * 16
#endif

constexpr int kThreads = 128, kBlocks = BLOCKS, kTurns = 16;
constexpr int kCount = kBlocks * kThreads * kTurns;

/// Each thread sums numbers that are kBlocks * kThreads apart. The block takes kWords words of shared memory.
template <int kWords>
__global__ void __launch_bounds__(kThreads) one_at_a_time(const float* in, float* out) {
  __shared__ volatile float room[kWords];
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int i = thread; i < kCount; i += kBlocks * kThreads) {
    sum += in[i];
  }
  room[threadIdx.x] = sum;
  out[thread] = room[threadIdx.x];
}

/// As many warps as the former with the same kWords; each has four loads of 16 bytes under way.
template <int kWords>
__global__ void __launch_bounds__(kThreads) four_vectors(const float4* in, float* out) {
  __shared__ volatile float room[kWords];
  const int thread = blockIdx.x * kThreads + threadIdx.x;
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = in[i * kBlocks * kThreads + thread];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum += v[i].x + v[i].y + v[i].z + v[i].w;
  room[threadIdx.x] = sum;
  out[thread] = room[threadIdx.x];
}

int main() {
  float *in, *out;
  cudaMalloc(&in, kCount * sizeof(float));
  cudaMalloc(&out, kBlocks * kThreads * sizeof(float));
  cudaMemset(in, 0, kCount * sizeof(float));
  one_at_a_time<12288><<<kBlocks, kThreads>>>(in, out);
  one_at_a_time<128><<<kBlocks, kThreads>>>(in, out);
  four_vectors<12288><<<kBlocks, kThreads>>>(reinterpret_cast<const float4*>(in), out);
  std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
