// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = max(x, 0); the gradient at 0 is 0, NaN stays NaN, element by element. Errors: x is not floating.
Tensor relu(const Tensor& x);

}  // namespace weft
