// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

inline constexpr int kMostRotaryPairs = 128;  ///< the pairs of channels in one head

struct RotaryArguments {
  double frequencies[kMostRotaryPairs] = {};  ///< radians per position of each pair; by value: a launch copies them
  int64_t first = 0;                          ///< position of token 0
  double scale = 1;
  bool back = false;  ///< turns the other way: the backward
};

/// Rotary positions (Su et al. 2021). Channels i and i + D / 2 of token t of x [B, T, H, D] turn by the angle
/// a = (first + t) frequencies[i]. It is computed in f32 (f64 for f64).
///   y = scale (u cos a - v sin a, v cos a + u sin a) where x = (u, v), halves of D / 2 channels
///
/// x has any strides with stride 1 in the last dimension; y contiguous, of x's sizes and floating dtype. D is even, at
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
