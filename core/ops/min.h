// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The smallest element of x over `dims` (none named: all); NaN wins. Elements that tie share the gradient equally.
/// Errors: nothing to choose from.
Tensor min(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
