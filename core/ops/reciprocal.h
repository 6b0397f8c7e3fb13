// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = 1 / x, element by element. Errors: x is not floating.
Tensor reciprocal(const Tensor& x);

}  // namespace weft
