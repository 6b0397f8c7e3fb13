// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/binary_table.h"
#include "kernels/kernel.h"
#include "kernels/number.h"

namespace weft::kernels {

/// Elementwise functions of two tensors with the same dtype as the result: the rows of kernels/contracts/binary_table.h, which
/// gives the formulas.
enum class Binary : uint8_t {
#define WEFT_ROW(name, ...) name,
  WEFT_BINARY_TABLE(WEFT_ROW)
#undef WEFT_ROW
};

/// y = f(a, b). Sizes equal (broadcasting is expressed by stride 0), one dtype: floating, i64 or i32. Computed in f32
/// (f64 for f64; integers in i64). y may be the same memory as a or b with the same strides (in-place).
/// add computes a + alpha b; the others ignore alpha.
WEFT_KERNEL(binary_forward, const Queue& queue, Binary f, const View& y, const View& a, const View& b, Number alpha);

/// Elementwise predicates.
enum class Compare : uint8_t {
#define WEFT_ROW(name, ...) name,
  WEFT_COMPARE_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
};

#define WEFT_ROW(...) +1
inline constexpr int kBinaryCount = WEFT_BINARY_TABLE(WEFT_ROW);
inline constexpr int kCompareCount = WEFT_COMPARE_TABLE(WEFT_ROW, WEFT_ROW);
#undef WEFT_ROW

/// y = f(a, b): y is bool; a and b have one dtype (any).
WEFT_KERNEL(compare, const Queue& queue, Compare f, const View& y, const View& a, const View& b);

/// y = condition ? a : b. condition is bool; a, b and y have one dtype (any); sizes equal, any strides.
WEFT_KERNEL(where, const Queue& queue, const View& y, const View& condition, const View& a, const View& b);

}  // namespace weft::kernels
