// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Elementwise functions of two tensors with the same dtype as the result.
enum class Binary : uint8_t { add, sub, mul, div, maximum, minimum, pow };
inline constexpr int kBinaryCount = static_cast<int>(Binary::pow) + 1;

/// y = f(a, b). Sizes equal (broadcasting is expressed by stride 0), one dtype: floating, i64 or i32. Computed in f32
/// (f64 for f64; integers in i64). y may be the same memory as a or b with the same strides (in-place).
/// add computes a + alpha b; the others ignore alpha.
WEFT_KERNEL(binary_forward, const Queue& queue, Binary f, const View& y, const View& a, const View& b, double alpha);

/// Elementwise predicates: y is bool; a and b have one dtype (any).
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, logical_and, logical_or };
WEFT_KERNEL(compare, const Queue& queue, Compare f, const View& y, const View& a, const View& b);

/// y = condition ? a : b. condition is bool; a, b and y have one dtype (any); sizes equal, any strides.
WEFT_KERNEL(where, const Queue& queue, const View& y, const View& condition, const View& a, const View& b);

}  // namespace weft::kernels
