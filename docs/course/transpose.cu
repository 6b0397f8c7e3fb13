// SPDX-License-Identifier: Apache-2.0
// Unit 3 of the course: one matrix, transposed in three ways. docs/course/3_shared_memory.md reads the counts of each line.
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

constexpr int kTile = 32, kRows = 8;  // a block of 32 x 8 threads moves a tile of 32 x 32

__global__ void naive(const float* in, float* out, int n) {
  const int x = blockIdx.x * kTile + threadIdx.x;
  const int y = blockIdx.y * kTile + threadIdx.y;
  for (int j = 0; j < kTile; j += kRows) {
    out[x * n + y + j] = in[(y + j) * n + x];
  }
}

template <int Padding>
__global__ void tiled(const float* in, float* out, int n) {
  __shared__ float tile[kTile][kTile + Padding];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  for (int j = threadIdx.y; j < kTile; j += kRows) {
    tile[j][threadIdx.x] = in[(top + j) * n + left + threadIdx.x];
  }
  __syncthreads();
  for (int j = threadIdx.y; j < kTile; j += kRows) {
    out[(left + j) * n + top + threadIdx.x] = tile[threadIdx.x][j];
  }
}

int main() {
  constexpr int n = 128;
  std::vector<float> matrix(n * n), result(n * n);
  for (int i = 0; i < n * n; ++i) matrix[i] = static_cast<float>(i);
  float *in, *out;
  cudaMalloc(&in, n * n * sizeof(float));
  cudaMalloc(&out, n * n * sizeof(float));
  cudaMemcpy(in, matrix.data(), n * n * sizeof(float), cudaMemcpyHostToDevice);
  const dim3 blocks(n / kTile, n / kTile), threads(kTile, kRows);
  int wrong = 0;
  for (int version = 0; version < 3; ++version) {
    cudaMemset(out, 0, n * n * sizeof(float));
    if (version == 0) naive<<<blocks, threads>>>(in, out, n);
    if (version == 1) tiled<0><<<blocks, threads>>>(in, out, n);
    if (version == 2) tiled<1><<<blocks, threads>>>(in, out, n);
    cudaMemcpy(result.data(), out, n * n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n * n; ++i) wrong += result[i] != matrix[i % n * n + i / n];
  }
  std::printf("%d wrong elements of %d\n", wrong, 3 * n * n);
  return wrong != 0;
}
