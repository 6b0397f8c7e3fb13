// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "kernels/contracts/philox.h"

// Converts the words of one Philox block to numbers, equally on every device (kernels/contracts/random.h).

namespace weft::kernels {

/// Draws of one Philox block: four for the types computed in f32, two for f64.
template <class A>
inline constexpr int kDraws = sizeof(A) == 8 ? 2 : 4;

/// Draw `i` of a block in [0, 1).
template <class A>
WEFT_HD A uniform_draw(const Philox4& block, int i) {
  if constexpr (sizeof(A) == 8)
    return uniform01(block.word[2 * i], block.word[2 * i + 1]);  // NOLINT: i is 0 or 1
  else
    return uniform01(block.word[i]);
}

/// An integer in [0, count) of a draw in [0, 1); the product may round up to count.
WEFT_HD int64_t integer_below(int64_t count, double draw) {
  const int64_t value = static_cast<int64_t>(draw * static_cast<double>(count));
  return value < count ? value : count - 1;
}

/// Draws 2 pair and 2 pair + 1 of a block, normal with mean 0 and deviation 1 (Box and Muller 1958):
/// sqrt(-2 ln(1 - u)) times the cosine and the sine of 2 pi v.
template <class A>
WEFT_HD void normal_pair(const Philox4& block, int pair, A& first, A& second) {
  const A u = uniform_draw<A>(block, 2 * pair), v = uniform_draw<A>(block, 2 * pair + 1);
  const A radius = std::sqrt(A(-2) * std::log(A(1) - u)), angle = A(6.283185307179586476925) * v;
  first = radius * std::cos(angle);
  second = radius * std::sin(angle);
}

}  // namespace weft::kernels
