// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How many elements over `dims` (none named: all) are not 0: i64.
Tensor count_nonzero(const Tensor& x, const std::vector<int64_t>& dims = {});
/// sum() and mean() of the elements that are no NaN; without one 0 and NaN. Errors: not floating.
Tensor nansum(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);
Tensor nanmean(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
