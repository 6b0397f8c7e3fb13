// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The mean of x over `dims` (none named: all), accumulated in f32 (f64 for f64); of integers as f32. The reduced
/// dimensions go, or stay with size 1 with keep_dims. The mean of nothing is NaN.
Tensor mean(const Tensor& x, const std::vector<int64_t>& dims = {}, bool keep_dims = false);

}  // namespace weft
