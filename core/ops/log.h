// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the natural logarithm of x, element by element. Errors: x is not floating.
Tensor log(const Tensor& x);

}  // namespace weft
