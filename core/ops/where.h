// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = condition ? a : b, element by element, with broadcasting. `condition` is bool. Any dtype.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

}  // namespace weft
