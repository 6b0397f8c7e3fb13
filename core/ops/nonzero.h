// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// How many elements there are decides sizes: both wait for the device, and cannot be captured.

/// i64 [count, dimensions of x]: the coordinates of the elements that are not 0 (NaN is not), in row-major order.
Tensor nonzero(const Tensor& x);

/// The elements of x where `mask` (bool) is true, in row-major order, after the two are broadcast; rank 1.
Tensor masked_select(const Tensor& x, const Tensor& mask);

}  // namespace weft
