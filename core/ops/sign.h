// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = -1, 0 or 1; the gradient is 0, element by element. Errors: x is not floating.
Tensor sign(const Tensor& x);

}  // namespace weft
