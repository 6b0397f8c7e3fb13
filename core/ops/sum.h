// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The sum of x over `dims` (none named: all), accumulated in f32 (f64 for f64); integers and bool give i64. The
/// reduced dimensions go, or stay with size 1 with keep_dims. The sum of nothing is 0.
Tensor sum(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
