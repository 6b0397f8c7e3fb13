// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = condition ? a : b, element by element, with broadcasting. `condition` is bool. Any dtype.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
/// The same with a number for one of the two, which takes the tensor's dtype.
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);

/// x with `value` wherever `mask` (bool) is true.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

}  // namespace weft
