// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = -x, element by element. Errors: x is not floating.
Tensor neg(const Tensor& x);
Tensor operator-(const Tensor& x);

}  // namespace weft
