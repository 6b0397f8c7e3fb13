// SPDX-License-Identifier: Apache-2.0
// Unit 9 of the course: tiles that arrive while others are in use. docs/course/9_async_copies.md reads times and races.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

#ifndef OPEN
#define OPEN 1  // groups that a wait leaves under way: all but tile t's
#endif

constexpr int kTile = 1024, kThreads = 256, kTiles = 16, kBlocks = 132;

/// Some arithmetic on the tile's numbers, its neighbours' included.
__device__ float use(const float* tile) {
  float sum = 0;
  for (int i = threadIdx.x; i < kTile; i += kThreads) {
    float x = tile[(i + 1) % kTile];
#pragma unroll 1
    for (int turn = 0; turn < 8; ++turn) x = x * 0.5f + 1.0f;
    sum += x;
  }
  return sum;
}

__global__ void in_turn(const float* in, float* out) {
  __shared__ float tile[kTile];
  in += blockIdx.x * kTiles * kTile;
  float sum = 0;
  for (int t = 0; t < kTiles; ++t) {
    for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] = in[t * kTile + i];
    __syncthreads();
    sum += use(tile);
    __syncthreads();
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void ahead(const float* in, float* out) {
  __shared__ alignas(16) float tile[2][kTile];
  in += blockIdx.x * kTiles * kTile;
  const auto begin = [&](int t) {
    if (t < kTiles) __pipeline_memcpy_async(&tile[t % 2][4 * threadIdx.x], &in[t * kTile + 4 * threadIdx.x], 16);
    __pipeline_commit();
  };
  begin(0);
  float sum = 0;
  for (int t = 0; t < kTiles; ++t) {
    begin(t + 1);
    __pipeline_wait_prior(OPEN);
    __syncthreads();
    sum += use(tile[t % 2]);
    __syncthreads();
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

int main() {
  constexpr int n = kBlocks * kTiles * kTile, results = kBlocks * kThreads;
  std::vector<float> values(n), first(results), second(results);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i % 9);
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, results * sizeof(float));
  cudaMemcpy(in, values.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  in_turn<<<kBlocks, kThreads>>>(in, out);
  cudaMemcpy(first.data(), out, results * sizeof(float), cudaMemcpyDeviceToHost);
  ahead<<<kBlocks, kThreads>>>(in, out);
  cudaMemcpy(second.data(), out, results * sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%s\n", first == second ? "the same results" : "different results");
  return 0;
}
