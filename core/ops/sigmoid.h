// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = 1 / (1 + e^-x), element by element. Errors: x is not floating.
Tensor sigmoid(const Tensor& x);

}  // namespace weft
