// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = the slices of x along `dim` at the positions of `index` (rank 1, integers). Errors: a position outside of x (on
/// the CPU; on other devices floating results are NaN there).
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);

}  // namespace weft
