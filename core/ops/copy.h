// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x in another dtype (x itself if nothing changes). Floating to integer truncates; anything to bool is x != 0.
/// The gradient goes back in x's dtype; none flows through integers.
Tensor cast(const Tensor& x, DType dtype);

/// Records that `y` holds x's values in another dtype. Returns y.
Tensor recorded_cast(Tensor y, const Tensor& x);

/// The dtype in which x best gets its gradient: f32 if x is of 16 bits and a cast from f32 made it, else x's.
DType gradient_dtype(const Tensor& x);

}  // namespace weft
