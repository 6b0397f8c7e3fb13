// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstring>

namespace emulator::source {

/// The 4 kBlock columns of multiply_add from `column` on.
template <int kBlock>
void multiply_columns(float* sums, const float* a, const float* b, int rows, int columns, int depth, int row,
                      int column) {
  using Four = float __attribute__((vector_size(16)));
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

/// sums[rows x columns] += a b, one product after the other; a[depth][rows] and b[depth][columns] in f32, columns a
/// multiple of 8.
inline void multiply_add(float* sums, const float* a, const float* b, int rows, int columns, int depth) {
  for (int row = 0; row < rows; ++row) {
    int column = 0;
    for (; column + 16 <= columns; column += 16) multiply_columns<4>(sums, a, b, rows, columns, depth, row, column);
    if (column < columns) multiply_columns<2>(sums, a, b, rows, columns, depth, row, column);
  }
}

}  // namespace emulator::source
