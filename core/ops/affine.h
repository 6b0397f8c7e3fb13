// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = scale x + shift, element by element, in one pass. Floating x keeps its dtype; integers become f32.
Tensor affine(const Tensor& x, double scale, double shift);

}  // namespace weft
