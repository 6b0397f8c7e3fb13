// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/contracts/binary.h"

namespace weft {

// bool tensors, element by element, with broadcasting and promotion; no gradient: eq (a == b), ne, lt, le, gt, ge, and
// logical_and, logical_or of bool tensors (other dtypes count as x != 0). Comparisons with NaN are false (ne: true).
// Integers are compared with a number exactly. The rows of kernels/contracts/binary_table.h.
#define WEFT_LOGICAL(name, ...) Tensor name(const Tensor& a, const Tensor& b);
#define WEFT_COMPARISON(name, ...) \
  WEFT_LOGICAL(name)               \
  Tensor name(const Tensor& a, Number b);
WEFT_COMPARE_TABLE(WEFT_COMPARISON, WEFT_LOGICAL)
#undef WEFT_COMPARISON
#undef WEFT_LOGICAL

#define WEFT_OPERATOR(symbol, name, mirrored)                                            \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, Number b) { return name(a, b); }        \
  inline Tensor operator symbol(Number a, const Tensor& b) { return mirrored(b, a); }
WEFT_OPERATOR(==, eq, eq)
WEFT_OPERATOR(!=, ne, ne)
WEFT_OPERATOR(<, lt, gt)
WEFT_OPERATOR(<=, le, ge)
WEFT_OPERATOR(>, gt, lt)
WEFT_OPERATOR(>=, ge, le)
#undef WEFT_OPERATOR

/// Which elements are 0.
Tensor logical_not(const Tensor& x);
/// Which elements of the two are 0 in one and not in the other, with broadcasting.
Tensor logical_xor(const Tensor& a, const Tensor& b);
inline Tensor operator!(const Tensor& x) { return logical_not(x); }
// Both take bool tensors. Errors: other dtypes, whose bits are meant elsewhere: logical_and, logical_or.
Tensor operator&(const Tensor& a, const Tensor& b);
Tensor operator|(const Tensor& a, const Tensor& b);

/// Which elements are NaN. Integers never are.
Tensor isnan(const Tensor& x);
/// Which elements are neither NaN nor infinite.
Tensor isfinite(const Tensor& x);

/// Which elements are infinite.
Tensor isinf(const Tensor& x);

/// y = condition ? a : b, element by element, with broadcasting. `condition` is bool. Any dtype.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// As above with a number for one of the two, which takes the tensor's dtype; beside a floating number integers become
/// f32, and bool i64 unless the number is 0 or 1. Errors: a whole number that the dtype does not hold.
Tensor where(const Tensor& condition, const Tensor& a, Number b);
Tensor where(const Tensor& condition, Number a, const Tensor& b);

/// x with `value` wherever `mask` (bool) is true. Errors: x's dtype does not hold the value.
Tensor masked_fill(const Tensor& x, const Tensor& mask, Number value);

/// Whether any element of x over `dims` (none named: all) is not 0. bool; of nothing: false.
Tensor any(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);
/// Whether all of them are; true without elements.
Tensor all(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

// How many elements there are decides sizes: both wait for the device, and cannot be captured.

/// i64 [count, dimensions of x]: the coordinates of the elements that are not 0 (NaN is not), in row-major order.
Tensor nonzero(const Tensor& x);

/// The elements of x where `mask` (bool) is true, in row-major order, after the two are broadcast; rank 1.
Tensor masked_select(const Tensor& x, const Tensor& mask);

/// x [..., R, C] with zeros above its diagonal number `diagonal` (0: the main one, positive: to the right of it).
Tensor tril(const Tensor& x, Integer diagonal = 0);
/// As above, with zeros below the diagonal.
Tensor triu(const Tensor& x, Integer diagonal = 0);

}  // namespace weft
