// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The i64 index of the first largest element along `dim`; NaN counts as the largest. No gradient.
Tensor argmax(const Tensor& x, int64_t dim, bool keep_dims = false);
/// The same of the first smallest element; NaN counts as the smallest. Floating, i64 or i32.
Tensor argmin(const Tensor& x, int64_t dim, bool keep_dims = false);

}  // namespace weft
