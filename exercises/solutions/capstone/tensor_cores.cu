// SPDX-License-Identifier: Apache-2.0
// Unit 10: swizzled tiles of 64 x 64, four warps of 32 x 32, mma.sync. Loads and products alternate.
#include "weft_ptx.h"

constexpr int kTile = 64, kDepth = 32, kThreads = 128;

/// Where 8 neighbours of a row (16 bytes) lie: rows of a have 4 such runs, rows of b 8.
__device__ int offset_a(int row, int run) { return (row * 4 + (run ^ (row / 2 % 4))) * 8; }
__device__ int offset_b(int row, int run) { return (row * 8 + (run ^ row % 8)) * 8; }

__global__ void product_kernel(const bf16* a, const bf16* b, float* c, int n) {
  __shared__ __align__(128) bf16 tile_a[kTile * kDepth], tile_b[kDepth * kTile];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / 2 * 32, column = warp % 2 * 32;
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile;
  float sum[2][4][4] = {};
  for (int first = 0; first < n; first += kDepth) {
    for (int i = threadIdx.x; i < kTile * 4; i += kThreads)
      ptx::st16(&tile_a[offset_a(i / 4, i % 4)], ptx::ld16(&a[(top + i / 4) * n + first + i % 4 * 8]));
    for (int i = threadIdx.x; i < kDepth * 8; i += kThreads)
      ptx::st16(&tile_b[offset_b(i / 8, i % 8)], ptx::ld16(&b[(first + i / 8) * n + left + i % 8 * 8]));
    __syncthreads();
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t x[2][4], w[2][4];
      for (int p = 0; p < 2; ++p)
        ptx::ldmatrix_x4(x[p], &tile_a[offset_a(row + p * 16 + lane % 16, k / 8 + lane / 16)]);
      for (int q = 0; q < 2; ++q)
        ptx::ldmatrix_x4_trans(w[q], &tile_b[offset_b(k + lane % 16, (column + q * 16) / 8 + lane / 16)]);
      for (int p = 0; p < 2; ++p)
        for (int q = 0; q < 4; ++q)
          ptx::mma_m16n8k16<bf16>(sum[p][q], x[p], {w[q / 2][q % 2 * 2], w[q / 2][q % 2 * 2 + 1]});
    }
    __syncthreads();
  }
  for (int p = 0; p < 2; ++p)
    for (int q = 0; q < 4; ++q)
      for (int i = 0; i < 4; ++i)
        c[(top + row + p * 16 + lane / 4 + i / 2 * 8) * n + left + column + q * 8 + lane % 4 * 2 + i % 2] =
            sum[p][q][i];
}

void product(const bf16* a, const bf16* b, float* c, int n) {
  product_kernel<<<dim3(n / kTile, n / kTile), kThreads>>>(a, b, c, n);
}
