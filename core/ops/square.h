// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x^2, element by element. Errors: x is not floating.
Tensor square(const Tensor& x);

}  // namespace weft
