// SPDX-License-Identifier: Apache-2.0
// Unit 8 of the course: c = a b of square matrices, in three ways. docs/course/8_products.md reads the counts of each
// line.
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

constexpr int kSize = 128;

/// A thread has one element, and loads its operands.
__global__ void naive(const float* a, const float* b, float* c) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int k = 0; k < kSize; ++k) {
    sum += a[row * kSize + k] * b[k * kSize + column];
  }
  c[row * kSize + column] = sum;
}

/// A block has 32 x 32 elements, and loads tiles that all of its threads use.
__global__ void tiled(const float* a, const float* b, float* c) {
  __shared__ float as[32][32], bs[32][32];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  float sum = 0;
  for (int first = 0; first < kSize; first += 32) {
    as[y][x] = a[row * kSize + first + x];
    bs[y][x] = b[(first + y) * kSize + column];
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 32; ++k) {
      sum += as[y][k] * bs[k][x];
    }
    __syncthreads();
  }
  c[row * kSize + column] = sum;
}

/// A block of 256 threads has 64 x 64 elements, and each thread 4 x 4 of them, in registers.
__global__ void registers(const float* a, const float* b, float* c) {
  __shared__ float as[64][17], bs[16][64];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16, left = blockIdx.x * 64, top = blockIdx.y * 64;
  float sum[4][4] = {};
  for (int first = 0; first < kSize; first += 16) {
    for (int i = threadIdx.x; i < 64 * 16; i += 256) {
      as[i / 16][i % 16] = a[(top + i / 16) * kSize + first + i % 16];
      bs[i / 64][i % 64] = b[(first + i / 64) * kSize + left + i % 64];
    }
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < 16; ++k) {
      float from_a[4], from_b[4];
      for (int i = 0; i < 4; ++i) {
        from_a[i] = as[y + 16 * i][k];
        from_b[i] = bs[k][x + 16 * i];
      }
      for (int i = 0; i < 16; ++i) {
        sum[i / 4][i % 4] += from_a[i / 4] * from_b[i % 4];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 16; ++i) c[(top + y + i / 4 * 16) * kSize + left + x + i % 4 * 16] = sum[i / 4][i % 4];
}

int main() {
  constexpr int n = kSize * kSize;
  std::vector<float> a(n), b(n), c(n), expected(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i % 7 - 3);
    b[i] = static_cast<float>(i % 5 - 2);
  }
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < kSize; ++k) expected[i] += a[i / kSize * kSize + k] * b[k * kSize + i % kSize];
  float *da, *db, *dc;
  for (float** const p : {&da, &db, &dc}) cudaMalloc(p, n * sizeof(float));
  cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  int wrong = 0;
  for (int version = 0; version < 3; ++version) {
    if (version == 0) naive<<<dim3(kSize / 32, kSize / 8), dim3(32, 8)>>>(da, db, dc);
    if (version == 1) tiled<<<dim3(kSize / 32, kSize / 32), dim3(32, 32)>>>(da, db, dc);
    if (version == 2) registers<<<dim3(kSize / 64, kSize / 64), 256>>>(da, db, dc);
    cudaMemcpy(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) wrong += c[i] != expected[i];
  }
  std::printf("%d of %d elements wrong\n", wrong, 3 * n);
  return wrong != 0;
}
