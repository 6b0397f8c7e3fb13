// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x^exponent, element by element. Integers become f32.
Tensor pow(const Tensor& x, double exponent);
/// y = a^b with broadcasting. The gradient of b needs a > 0.
Tensor pow(const Tensor& a, const Tensor& b);

}  // namespace weft
