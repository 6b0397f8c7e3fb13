// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the smaller of a and b, element by element, with broadcasting; NaN wins. Equal elements share the gradient.
Tensor minimum(const Tensor& a, const Tensor& b);

}  // namespace weft
