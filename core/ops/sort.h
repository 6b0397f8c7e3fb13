// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Elements in order, and where each stood along the dimension (i64).
struct Sorted {
  Tensor values, indices;
};

// Any dtype. Equal elements keep their order; NaN counts as larger than every number. The gradient of a value flows to
// where it stood. Errors: no such dimension.

/// The elements along `dim` from the smallest to the largest, or from the largest.
Sorted sort(const Tensor& x, Integer dim = -1, bool descending = false);
/// sort's indices.
Tensor argsort(const Tensor& x, Integer dim = -1, bool descending = false);
/// The k largest (or smallest) elements along `dim`, the first of them first. Errors: k < 0 or more than there are.
Sorted topk(const Tensor& x, Integer k, Integer dim = -1, bool largest = true);

}  // namespace weft
