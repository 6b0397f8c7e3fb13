// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y[i, j, …] = x[i, index[i, j, …], …] (shown for dim = 1): index (integers) has x's sizes but for `dim`; y has its.
/// Errors: sizes that do not fit; a position outside of x (on the CPU; on other devices floating results are NaN
/// there).
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);

}  // namespace weft
