// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x^exponent, element by element, as IEEE 754's pow. Integers become f32.
Tensor pow(const Tensor& x, double exponent);
/// y = a^b with broadcasting. The gradient of b is a^b log(a), but 0 where a = 0 and b >= 0 (0^0 included).
Tensor pow(const Tensor& a, const Tensor& b);

}  // namespace weft
