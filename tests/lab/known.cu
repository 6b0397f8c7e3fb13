// SPDX-License-Identifier: Apache-2.0
// Kernels whose costs are published; known.py holds the numbers, with their sources. Each is written after its
// description.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kTile = 32, kRows = 8, kBlock = 128;

__global__ void transpose_naive(const float* in, float* out, int n) {
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int row = y; row < (blockIdx.y + 1) * kTile; row += kRows) out[x * n + row] = in[row * n + x];
}

template <int Padding>
__global__ void transpose_tile(const float* in, float* out, int n) {
  __shared__ float tile[kTile][kTile + Padding];
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  for (int row = threadIdx.y; row < kTile; row += kRows)
    tile[row][threadIdx.x] = in[(y + row) * n + x + threadIdx.x];
  __syncthreads();
  for (int row = threadIdx.y; row < kTile; row += kRows)
    out[(x + row) * n + y + threadIdx.x] = tile[threadIdx.x][row];
}

// The transpose of doubles, by blocks of 32 x 32 threads with an element each.
template <bool LoadsColumns>
__global__ void transpose_doubles(const double* in, double* out, int n) {
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  out[LoadsColumns ? y * n + x : x * n + y] = in[LoadsColumns ? x * n + y : y * n + x];
}

template <int Padding>
__global__ void transpose_doubles_tile(const double* in, double* out, int n) {
  __shared__ double tile[kTile][kTile + Padding];
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  tile[threadIdx.x][threadIdx.y] = in[(y + threadIdx.y) * n + x + threadIdx.x];
  __syncthreads();
  out[(x + threadIdx.y) * n + y + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}

__global__ void copy_offset(const float* in, float* out, int offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x + offset;
  out[i] = in[i];
}

__global__ void copy_stride(const float* in, float* out, int stride) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
  out[i] = in[i];
}

template <int Stride>
__global__ void shared_stride(float* out) {
  __shared__ float words[32 * Stride];
  for (int i = threadIdx.x; i < 32 * Stride; i += 32) words[i] = i;
  __syncwarp();
  out[threadIdx.x] = words[threadIdx.x * Stride];
}

// The first three reductions of Harris's series: neighbours by remainder, neighbours by packed threads, halves.
template <int Version>
__global__ void reduce(const float* in, float* out) {
  __shared__ float sum[kBlock];
  const unsigned t = threadIdx.x;
  sum[t] = in[blockIdx.x * kBlock + t];
  __syncthreads();
  if (Version == 1) {
#pragma unroll 1
    for (unsigned s = 1; s < kBlock; s *= 2) {
      if (t % (2 * s) == 0) sum[t] += sum[t + s];
      __syncthreads();
    }
  } else if (Version == 2) {
#pragma unroll 1
    for (unsigned s = 1; s < kBlock; s *= 2) {
      const unsigned i = 2 * s * t;
      if (i < kBlock) sum[i] += sum[i + s];
      __syncthreads();
    }
  } else {
#pragma unroll 1
    for (unsigned s = kBlock / 2; s > 0; s /= 2) {
      if (t < s) sum[t] += sum[t + s];
      __syncthreads();
    }
  }
  if (t == 0) out[blockIdx.x] = sum[0];
}

int main() {
  const int n = 64, values = 1 << 14;
  float *in, *out;
  cudaMalloc(&in, values * sizeof(float));
  cudaMalloc(&out, values * sizeof(float));
  cudaMemset(in, 0, values * sizeof(float));
  const dim3 tiles(n / kTile, n / kTile), threads(kTile, kRows);
  transpose_naive<<<tiles, threads>>>(in, out, n);
  transpose_tile<0><<<tiles, threads>>>(in, out, n);
  transpose_tile<1><<<tiles, threads>>>(in, out, n);
  const dim3 all(kTile, kTile);
  const double* const wide = reinterpret_cast<double*>(in);
  double* const turned = reinterpret_cast<double*>(out);
  transpose_doubles<true><<<tiles, all>>>(wide, turned, n);
  transpose_doubles<false><<<tiles, all>>>(wide, turned, n);
  transpose_doubles_tile<0><<<tiles, all>>>(wide, turned, n);
  transpose_doubles_tile<1><<<tiles, all>>>(wide, turned, n);
  copy_offset<<<1, kBlock>>>(in, out, 8);
  copy_offset<<<2, kBlock>>>(in, out, 1);
  copy_stride<<<1, kBlock>>>(in, out, 1);
  copy_stride<<<2, kBlock>>>(in, out, 2);
  copy_stride<<<3, kBlock>>>(in, out, 32);
  shared_stride<1><<<1, 32>>>(out);
  shared_stride<2><<<1, 32>>>(out);
  shared_stride<3><<<1, 32>>>(out);
  shared_stride<32><<<1, 32>>>(out);
  reduce<1><<<1, kBlock>>>(in, out);
  reduce<2><<<1, kBlock>>>(in, out);
  reduce<3><<<1, kBlock>>>(in, out);
  const cudaError_t error = cudaDeviceSynchronize();
  std::puts(cudaGetErrorString(error));
  return error != cudaSuccess;
}
