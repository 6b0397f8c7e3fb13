// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the cosine of x in radians, element by element. Errors: x is not floating.
Tensor cos(const Tensor& x);

}  // namespace weft
