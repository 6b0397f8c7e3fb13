// SPDX-License-Identifier: Apache-2.0
// Units 9 and 10: tiles of 128 x 128, eight warps of 64 x 32, a ring of four stages that cp.async fills.
#include "weft_ptx.h"

constexpr int kTile = 128, kDepth = 32, kThreads = 256, kStages = 4, kStage = 2 * kTile * kDepth;

/// Where 8 neighbours of a row (16 bytes) lie: rows of a have 4 such runs, rows of b 16.
__device__ int offset_a(int row, int run) { return (row * 4 + (run ^ (row / 2 % 4))) * 8; }
__device__ int offset_b(int row, int run) { return (row * 16 + (run ^ row % 8)) * 8; }

__global__ void __launch_bounds__(kThreads) product_kernel(const bf16* a, const bf16* b, float* c, int n) {
  extern __shared__ __align__(128) bf16 ring[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp / 4 * 64, column = warp % 4 * 32;
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile;
  const auto load = [&](int step) {
    bf16 *const tile_a = ring + step % kStages * kStage, *const tile_b = tile_a + kTile * kDepth;
    const int first = step * kDepth;
    for (int i = threadIdx.x; first < n && i < kTile * 4; i += kThreads)
      ptx::cp_async<16>(&tile_a[offset_a(i / 4, i % 4)], &a[(top + i / 4) * n + first + i % 4 * 8]);
    for (int i = threadIdx.x; first < n && i < kDepth * 16; i += kThreads)
      ptx::cp_async<16>(&tile_b[offset_b(i / 16, i % 16)], &b[(first + i / 16) * n + left + i % 16 * 8]);
    ptx::cp_async_commit();  // an empty group after the last step: the count of groups stays the count of steps
  };
  float sum[4][4][4] = {};
  for (int step = 0; step < kStages - 1; ++step) load(step);
  for (int step = 0; step < n / kDepth; ++step) {
    ptx::cp_async_wait_group<kStages - 2>();
    __syncthreads();
    load(step + kStages - 1);
    const bf16 *const tile_a = ring + step % kStages * kStage, *const tile_b = tile_a + kTile * kDepth;
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t x[4][4], w[2][4];
      for (int p = 0; p < 4; ++p)
        ptx::ldmatrix_x4(x[p], &tile_a[offset_a(row + p * 16 + lane % 16, k / 8 + lane / 16)]);
      for (int q = 0; q < 2; ++q)
        ptx::ldmatrix_x4_trans(w[q], &tile_b[offset_b(k + lane % 16, (column + q * 16) / 8 + lane / 16)]);
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q)
          ptx::mma_m16n8k16<bf16>(sum[p][q], x[p], {w[q / 2][q % 2 * 2], w[q / 2][q % 2 * 2 + 1]});
    }
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q)
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(
            &c[(top + row + p * 16 + lane / 4 + half * 8) * n + left + column + q * 8 + lane % 4 * 2]) =
            make_float2(sum[p][q][half * 2], sum[p][q][half * 2 + 1]);
}

void product(const bf16* a, const bf16* b, float* c, int n) {
  constexpr int kBytes = kStages * kStage * sizeof(bf16);
  cudaFuncSetAttribute(product_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  product_kernel<<<dim3(n / kTile, n / kTile), kThreads, kBytes>>>(a, b, c, n);
}
