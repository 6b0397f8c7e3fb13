// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "emulator/ptx/instructions/numbers.h"

// The functions that PTX approximates. Computed in f64 and rounded: better than PTX asks, with its special values.

namespace emulator::ptx {

/// 2^x to 1e-11, without branches: x = n + f, 2^f as a series of f * ln 2, n added to the exponent.
inline double exp2_of(double x) {
  const double within = x < -1000.0 ? -1000.0 : x > 1000.0 ? 1000.0 : x;
  const double shifted = within + 0x1.8p52;  // rounds to an integer, which the low bits then hold
  const double y = (within - (shifted - 0x1.8p52)) * 0x1.62e42fefa39efp-1;
  double p = 1.0 / 3628800;
  p = __builtin_fma(p, y, 1.0 / 362880);
  p = __builtin_fma(p, y, 1.0 / 40320);
  p = __builtin_fma(p, y, 1.0 / 5040);
  p = __builtin_fma(p, y, 1.0 / 720);
  p = __builtin_fma(p, y, 1.0 / 120);
  p = __builtin_fma(p, y, 1.0 / 24);
  p = __builtin_fma(p, y, 1.0 / 6);
  p = __builtin_fma(p, y, 0.5);
  p = __builtin_fma(p, y, 1.0);
  p = __builtin_fma(p, y, 1.0);
  return p * f64_of((bits_of(shifted) + 1023) << 52);
}
/// Results beyond f32 become infinity or zero when rounded to f32; a NaN stays one.
inline float exp2_of(float x) { return x != x ? x : static_cast<float>(exp2_of(static_cast<double>(x))); }

}  // namespace emulator::ptx
