// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = |x|; the gradient at 0 is 0, element by element. Errors: x is not floating.
Tensor abs(const Tensor& x);

}  // namespace weft
