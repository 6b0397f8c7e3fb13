// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x, then y[i, index[i, j, …], …] += source[i, j, …] (shown for dim = 1), in order of the sources: the same bits
/// in every run. index (integers) has source's sizes, and x's but for `dim`. Errors: sizes or dtypes that do not fit; on
/// the CPU a position outside of x (on other devices it is left out).
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

}  // namespace weft
