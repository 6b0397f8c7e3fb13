// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>

namespace emulator::source {

/// sums[rows x columns] += a b, one product after the other; a[depth][rows] and b[depth][columns] in f32, columns a
/// multiple of 16.
inline void multiply_add(float* sums, const float* a, const float* b, int rows, int columns, int depth) {
  using Four = float __attribute__((vector_size(16)));
  constexpr int kBlock = 4;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; column += 4 * kBlock) {
      float* const to = sums + row * columns + column;
      Four sum[kBlock];
      std::memcpy(sum, to, sizeof(sum));
      for (int k = 0; k < depth; ++k) {
        const float x = a[k * rows + row];
        Four y[kBlock];
        std::memcpy(y, b + k * columns + column, sizeof(y));
        for (int i = 0; i < kBlock; ++i) sum[i] += Four{x, x, x, x} * y[i];
      }
      std::memcpy(to, sum, sizeof(sum));
    }
}

}  // namespace emulator::source
