// SPDX-License-Identifier: Apache-2.0
// d = a b: a is rows x 64, b 64 x 8, in row order; rows is a multiple of 64. Right, but look at the shared loads.
#include "weft_ptx.h"

constexpr int kRow = 64;  // numbers of a row in the tile

/// Where run `run` (8 numbers, 16 bytes) of a row lies in the tile.
__device__ int offset(int row, int run) { return row * kRow + run * 8; }

__global__ void product_kernel(const bf16* a, const bf16* b, float* d) {
  __shared__ __align__(128) bf16 tile[64 * kRow];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, p = lane % 4;
  a += blockIdx.x * 64 * 64, d += blockIdx.x * 64 * 8;
  for (int i = threadIdx.x; i < 64 * 8; i += 128) ptx::st16(&tile[offset(i / 8, i % 8)], ptx::ld16(&a[i * 8]));
  __syncthreads();
  const auto pair_of_b = [&](int row) {
    return uint32_t{b[row * 8 + g].bits} | uint32_t{b[row * 8 + 8 + g].bits} << 16;
  };
  float sum[4] = {};
  for (int k = 0; k < 64; k += 16) {
    uint32_t x[4];
    ptx::ldmatrix_x4(x, &tile[offset(warp * 16 + lane % 16, k / 8 + lane / 16)]);
    ptx::mma_m16n8k16<bf16>(sum, x, {pair_of_b(k + 2 * p), pair_of_b(k + 2 * p + 8)});
  }
  for (int i = 0; i < 4; ++i) d[(warp * 16 + g + i / 2 * 8) * 8 + 2 * p + i % 2] = sum[i];
}

void product(const bf16* a, const bf16* b, float* d, int rows) { product_kernel<<<rows / 64, 128>>>(a, b, d); }
