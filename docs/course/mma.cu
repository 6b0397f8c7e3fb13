// SPDX-License-Identifier: Apache-2.0
// Unit 10 of the course: d = a b on tensor cores, with the rows of a in two layouts. docs/course/10_tensor_cores.md
// reads the counts.
#include <cuda_runtime.h>
#include <cstdio>
#include <vector>

#include "exercises/weft_ptx.h"

constexpr int kRows = 64, kDepth = 64, kColumns = 8;  // size of a block's tile of a; of b

/// On the ordinary units: a thread has 4 of the 64 x 8 elements.
__global__ void plain(const bf16* a, const bf16* b, float* d) {
  for (int i = threadIdx.x; i < kRows * kColumns; i += 128) {
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < kDepth; ++k) {
      sum += static_cast<float>(a[i / kColumns * kDepth + k]) * static_cast<float>(b[k * kColumns + i % kColumns]);
    }
    d[i] = sum;
  }
}

/// Where run `run` (16 bytes) of a row of 128 bytes lies.
template <bool kSwizzled>
__device__ int offset(int row, int run) {
  return row * kDepth + (kSwizzled ? run ^ row % 8 : run) * 8;
}

/// Four warps of 16 rows each.
template <bool kSwizzled>
__global__ void on_tensor_cores(const bf16* a, const bf16* b, float* d) {
  __shared__ __align__(128) bf16 tile[kRows * kDepth];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4;
  for (int i = threadIdx.x; i < kRows * 8; i += 128)
    ptx::st16(&tile[offset<kSwizzled>(i / 8, i % 8)], ptx::ld16(&a[i * 8]));
  __syncthreads();
  const auto pair_of_b = [&](int k) {
    return uint32_t{b[k * kColumns + group].bits} | uint32_t{b[(k + 1) * kColumns + group].bits} << 16;
  };
  float sum[4] = {};
#pragma unroll 1
  for (int k = 0; k < kDepth; k += 16) {
    uint32_t x[4];
    ptx::ldmatrix_x4(x, &tile[offset<kSwizzled>(warp * 16 + lane % 16, k / 8 + lane / 16)]);
    const uint32_t y[2] = {pair_of_b(k + 2 * pair), pair_of_b(k + 2 * pair + 8)};
    ptx::mma_m16n8k16<bf16>(sum, x, y);
  }
  for (int i = 0; i < 4; ++i) d[(warp * 16 + group + i / 2 * 8) * kColumns + 2 * pair + i % 2] = sum[i];
}

int main() {
  std::vector<bf16> a(kRows * kDepth), b(kDepth * kColumns);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
  constexpr int n = kRows * kColumns;
  std::vector<float> d(n), expected(n);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < kDepth; ++k) expected[i] += a[i / kColumns * kDepth + k] * b[k * kColumns + i % kColumns];
  bf16 *da, *db;
  float* dd;
  cudaMalloc(&da, a.size() * sizeof(bf16));
  cudaMalloc(&db, b.size() * sizeof(bf16));
  cudaMalloc(&dd, n * sizeof(float));
  cudaMemcpy(da, a.data(), a.size() * sizeof(bf16), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), b.size() * sizeof(bf16), cudaMemcpyHostToDevice);
  int wrong = 0;
  for (int version = 0; version < 3; ++version) {
    if (version == 0) plain<<<1, 128>>>(da, db, dd);
    if (version == 1) on_tensor_cores<false><<<1, 128>>>(da, db, dd);
    if (version == 2) on_tensor_cores<true><<<1, 128>>>(da, db, dd);
    cudaMemcpy(d.data(), dd, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) wrong += d[i] != expected[i];
  }
  std::printf("%d of %d elements wrong\n", wrong, 3 * n);
  return wrong != 0;
}
