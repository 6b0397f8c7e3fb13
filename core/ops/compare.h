// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// bool tensors, element by element, with broadcasting and promotion; no gradient. Comparisons with NaN are false (ne:
/// true).
Tensor eq(const Tensor& a, const Tensor& b);  ///< a == b
Tensor eq(const Tensor& a, double b);
Tensor ne(const Tensor& a, const Tensor& b);  ///< a != b
Tensor ne(const Tensor& a, double b);
Tensor lt(const Tensor& a, const Tensor& b);  ///< a < b
Tensor lt(const Tensor& a, double b);
Tensor le(const Tensor& a, const Tensor& b);  ///< a <= b
Tensor le(const Tensor& a, double b);
Tensor gt(const Tensor& a, const Tensor& b);  ///< a > b
Tensor gt(const Tensor& a, double b);
Tensor ge(const Tensor& a, const Tensor& b);  ///< a >= b
Tensor ge(const Tensor& a, double b);

/// Of bool tensors; other dtypes count as x != 0.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);

}  // namespace weft
