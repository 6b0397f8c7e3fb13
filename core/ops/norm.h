// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The 2-norm sqrt(sum of x^2) over `dims` (none named: all). The gradient of a zero norm is 0.
Tensor norm(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
