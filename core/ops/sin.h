// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the sine of x in radians, element by element. Errors: x is not floating.
Tensor sin(const Tensor& x);

}  // namespace weft
