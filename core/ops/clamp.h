// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = min(max(x, low), high), element by element; the gradient is 0 outside [low, high], at the bounds and at NaN.
/// Floating, i64 or i32. Errors: low > high.
Tensor clamp(const Tensor& x, double low, double high);

}  // namespace weft
