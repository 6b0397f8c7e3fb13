// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the larger of a and b, element by element, with broadcasting; NaN wins. Equal elements share the gradient; at NaN both get all.
Tensor maximum(const Tensor& a, const Tensor& b);

/// The smaller of a and b, otherwise as maximum.
Tensor minimum(const Tensor& a, const Tensor& b);

}  // namespace weft
