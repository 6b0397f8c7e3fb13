// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/binary.h"

namespace weft {

// bool tensors, element by element, with broadcasting and promotion; no gradient: eq (a == b), ne, lt, le, gt, ge, and
// logical_and, logical_or of bool tensors (other dtypes count as x != 0). Comparisons with NaN are false (ne: true).
// The rows of kernels/binary_table.h.
#define WEFT_LOGICAL(name, ...) Tensor name(const Tensor& a, const Tensor& b);
#define WEFT_COMPARISON(name, ...) \
  WEFT_LOGICAL(name)               \
  Tensor name(const Tensor& a, double b);
WEFT_COMPARE_TABLE(WEFT_COMPARISON, WEFT_LOGICAL)
#undef WEFT_COMPARISON
#undef WEFT_LOGICAL

/// Which elements are NaN. Integers never are.
Tensor isnan(const Tensor& x);
/// Which elements are neither NaN nor infinite.
Tensor isfinite(const Tensor& x);

}  // namespace weft
