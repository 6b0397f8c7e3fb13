// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x in another dtype (x itself if nothing changes). Floating to integer truncates; anything to bool is x != 0.
/// The gradient goes back in x's dtype; none flows through integers.
Tensor cast(const Tensor& x, DType dtype);

/// Records that `y` holds x's values in another dtype. Returns y.
Tensor recorded_cast(Tensor y, const Tensor& x);

}  // namespace weft
