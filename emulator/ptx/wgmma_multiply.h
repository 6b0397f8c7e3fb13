// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/matrix_numbers.h"

// The arithmetic of a warp's part of a wgmma: 16 rows. Rows run fastest in a and in the sums, so that b is read one
// number at a time, in whichever order it lies in shared memory.

namespace emulator::ptx::matrix {

constexpr int kWarpRows = 16;

/// sums[column][row] += a[k][row] * b; b is [column][k], or [k][column] with kAlongColumns. `columns` is a multiple
/// of 8.
template <class N, bool kAlongColumns>
EMULATOR_FUSED void multiply_columns(N* sums, const N* a, const N* b, int columns, int depth) {
  constexpr int kColumns = 4;
  for (int column = 0; column < columns; column += kColumns) {
    N* const to = sums + column * kWarpRows;
    Eight<N> low[kColumns], high[kColumns];
    for (int c = 0; c < kColumns; ++c) {
      low[c] = eight_at(to + c * kWarpRows);
      high[c] = eight_at(to + c * kWarpRows + 8);
    }
    for (int k = 0; k < depth; ++k) {
      const Eight<N> x = eight_at(a + k * kWarpRows), x8 = eight_at(a + k * kWarpRows + 8);
      for (int c = 0; c < kColumns; ++c) {
        const N y = kAlongColumns ? b[k * columns + column + c] : b[(column + c) * depth + k];
        low[c] += x * y;
        high[c] += x8 * y;
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      eight_at(to + c * kWarpRows) = low[c];
      eight_at(to + c * kWarpRows + 8) = high[c];
    }
  }
}

}  // namespace emulator::ptx::matrix
