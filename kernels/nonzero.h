// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y (i64 [count, rank of x]) = the coordinates of the elements of x (bool) that are true, in row-major order.
/// `ends`: the cumsum of x's elements, i64 [numel]; its last number is `count`. Contiguous.
WEFT_KERNEL(nonzero, const Queue& queue, const View& y, const View& x, const View& ends);

}  // namespace weft::kernels
