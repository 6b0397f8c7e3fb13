// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "core/tensor.h"

namespace weft {

struct RotaryOptions {
  std::vector<double> frequencies;  ///< radians per position, of each of the D / 2 pairs of channels
  int64_t first = 0;                ///< position of the first token
  double scale = 1;                 ///< factor of the result
};

/// Rotary positions (Su et al. 2021, "RoFormer"): channels i and i + D / 2 of token t of x [N, tokens, heads, D] turn
/// by the angle (first + t) frequencies[i]. The products of queries and keys then depend on the distance of their
/// tokens alone. Angles are computed in f32 (f64 for f64 x). x may be a slice: nothing is copied where its last
/// dimension has stride 1. Errors: other sizes, an odd D, one above 256.
Tensor rotary(const Tensor& x, const RotaryOptions& options);

}  // namespace weft
