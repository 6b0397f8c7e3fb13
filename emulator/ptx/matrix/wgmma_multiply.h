// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <type_traits>

#include "emulator/ptx/matrix/matrix_numbers.h"

// The arithmetic of a warp's part of a wgmma: 16 rows. Rows run fastest in a and in the accumulators. So b is read one
// number at a time, in any order of shared memory.

namespace emulator::ptx::matrix {

constexpr int kWarpRows = 16;
constexpr int kColumns = 4;  ///< at once

/// sums[column][row] += a[k][row] * b; b is [column][k], or [k][column] with kAlongColumns. `columns` is a multiple
/// of 8. `skips`, by fours of columns: those where b is zero.
template <class N, bool kAlongColumns>
EMULATOR_FUSED void multiply_columns(N* sums, const N* a, const N* b, int columns, int depth, const bool* skips) {
  for (int column = 0; column < columns; column += kColumns) {
    if (skips[column / kColumns]) continue;
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

/// Which fours of b's columns hold nothing but zeros; the number of them. Tiles reach beyond matrices, and there TMA
/// fills them with zeros.
template <class N, bool kAlongColumns>
int find_zeros(const N* b, int columns, int depth, bool* zeros) {
  const auto bits = [](N x) { return std::bit_cast<uint32_t>(x) << std::is_same_v<N, float>; };  // also for -0
  constexpr int kMostColumns = 256;
  uint32_t of_column[kAlongColumns ? kMostColumns : 1] = {};
  if constexpr (kAlongColumns)
    for (int k = 0; k < depth; ++k)
      for (int column = 0; column < columns; ++column) of_column[column] |= bits(b[k * columns + column]);
  int found = 0;
  for (int column = 0; column < columns; column += kColumns) {
    uint32_t any = 0;
    if constexpr (kAlongColumns)
      for (int c = 0; c < kColumns; ++c) any |= of_column[column + c];
    else
      for (int k = 0; k < kColumns * depth; ++k) any |= bits(b[column * depth + k]);
    zeros[column / kColumns] = any == 0;
    found += any == 0;
  }
  return found;
}

/// Zero times any of them is zero.
template <class N>
bool are_finite(const N* numbers, int count) {
  if constexpr (std::is_same_v<N, float>) {
    uint32_t most = 0;
    for (int k = 0; k < count; ++k) most = std::max(most, std::bit_cast<uint32_t>(numbers[k]) & 0x7fffffffu);
    return most < 0x7f800000u;
  }
  return true;
}

}  // namespace emulator::ptx::matrix
