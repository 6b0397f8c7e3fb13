// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the hyperbolic tangent of x, element by element. Errors: x is not floating.
Tensor tanh(const Tensor& x);

}  // namespace weft
