// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y[i] = x[0] + … + x[i] along `dim`; of x's sizes. Integers and bool are summed in i64. Errors: no such dimension.
Tensor cumsum(const Tensor& x, int64_t dim);

}  // namespace weft
