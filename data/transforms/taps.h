// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "data/transforms/resize.h"

namespace weft::data {

/// Weights of a resampling are fixed-point numbers with so many bits after the point.
constexpr int kTapBits = 22;

/// Which inputs each output takes, and how much of each: output o is the sum of weights[at + t] * input[first + t], t
/// from 0 to count - 1.
struct Taps {
  struct Span {
    int64_t first = 0;
    int64_t count = 0;
    int64_t at = 0;
  };
  std::vector<Span> spans;       ///< one for each output
  std::vector<int32_t> weights;  ///< those of an output have the sum 1 << kTapBits, but for rounding
};

/// The taps of a row of `in` pixels that becomes one of `out`. The filter is stretched by the scale when shrinking.
Taps make_taps(int64_t in, int64_t out, Filter filter);

}  // namespace weft::data
