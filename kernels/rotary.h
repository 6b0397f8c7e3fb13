// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

inline constexpr int kMostRotaryPairs = 128;  ///< of channels in one head

struct RotaryArguments {
  double frequencies[kMostRotaryPairs] = {};  ///< radians per position of each pair; by value: a launch copies them
  int64_t first = 0;                          ///< position of token 0
  double scale = 1;
  bool back = false;  ///< turns the other way: the backward
};

/// Rotary positions (Su et al. 2021). Token t of x [B, T, H, D] turns its channels i and i + D / 2 by the angle
/// a = (first + t) frequencies[i], which is computed in f32 (f64 for f64):
///   y[i] = scale (x[i] cos a - x[i + D/2] sin a),  y[i + D/2] = scale (x[i + D/2] cos a + x[i] sin a)
/// x: any strides with stride 1 in the last dimension; y contiguous, of x's sizes and floating dtype. D is even, at
/// most 256.
WEFT_KERNEL(rotary, const Queue& queue, const View& y, const View& x, const RotaryArguments& arguments);

/// Checks the arguments, for both implementations.
inline void check_rotary(const View& y, const View& x) {
  WEFT_CHECK(x.rank == 4 && y.same_sizes(x) && y.dtype == x.dtype && y.is_contiguous() && x.strides[3] == 1 &&
                 x.sizes[3] % 2 == 0 && x.sizes[3] <= 2 * kMostRotaryPairs,
             "rotary: expected x [B,T,H,D] with an even D of at most ", 2 * kMostRotaryPairs,
             " and y contiguous, of its sizes and dtype, got ", x, " and ", y);
}

}  // namespace weft::kernels
