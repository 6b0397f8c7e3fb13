// SPDX-License-Identifier: Apache-2.0
#pragma once

// The elementwise functions of two tensors: name, y. The enumerations and the kernels of all devices follow from these
// rows. The formulas are C++ in a, b and (add) alpha, all of the type T that the kernel computes in. New rows go to the
// end.

// clang-format off
/// y has the dtype of a and b. maximum and minimum: NaN wins.
#define WEFT_BINARY_TABLE(ROW)          \
  ROW(add, a + alpha * b)               \
  ROW(sub, a - b)                       \
  ROW(mul, a * b)                       \
  ROW(div, quotient(a, b))              \
  ROW(maximum, a > b || a != a ? a : b) \
  ROW(minimum, a < b || a != a ? a : b) \
  ROW(pow, raised(a, b))                \
  ROW(atan2, angle_of(a, b))            \
  ROW(fmod, truncated_rest(a, b))       \
  ROW(remainder, floored_rest(a, b))

/// y is bool. A COMPARISON also compares with a number; the LOGICAL ones take what is not 0 as true.
#define WEFT_COMPARE_TABLE(COMPARISON, LOGICAL) \
  COMPARISON(eq, a == b)                        \
  COMPARISON(ne, a != b)                        \
  COMPARISON(lt, a < b)                         \
  COMPARISON(le, a <= b)                        \
  COMPARISON(gt, a > b)                         \
  COMPARISON(ge, a >= b)                        \
  LOGICAL(logical_and, a != T(0) && b != T(0))  \
  LOGICAL(logical_or, a != T(0) || b != T(0))
// clang-format on
