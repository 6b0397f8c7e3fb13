// SPDX-License-Identifier: Apache-2.0
#include "weft_ptx.h"

__global__ void products_kernel(const bf16* a, const bf16* b, float* d, int count) {
  const int product = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, p = lane % 4;
  if (product >= count) return;  // the whole warp
  a += product * 256, b += product * 128, d += product * 128;
  const auto pair_of_a = [&](int row, int column) { return *reinterpret_cast<const uint32_t*>(&a[row * 16 + column]); };
  const auto bits_of_b = [&](int row) { return uint32_t{b[row * 8 + g].bits}; };
  const auto pair_of_b = [&](int row) { return bits_of_b(row) | bits_of_b(row + 1) << 16; };
  float sum[4] = {};
  ptx::mma_m16n8k16<bf16>(
      sum, {pair_of_a(g, 2 * p), pair_of_a(g + 8, 2 * p), pair_of_a(g, 2 * p + 8), pair_of_a(g + 8, 2 * p + 8)},
      {pair_of_b(2 * p), pair_of_b(2 * p + 8)});
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * p + i % 2] = sum[i];
}

void products(const bf16* a, const bf16* b, float* d, int count) {
  products_kernel<<<(count + 3) / 4, 128>>>(a, b, d, count);
}
