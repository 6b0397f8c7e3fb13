// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x with `before` zeros before and `after` zeros after it along `dim`. Errors: negative numbers.
Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after);

}  // namespace weft
