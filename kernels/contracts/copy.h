// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y = x, converting the dtype: any dtype to any dtype, any strides, same sizes (a broadcast x has stride 0).
/// Floating to integer truncates; anything to bool is `x != 0`. This one kernel serves contiguous(), cast, concat,
/// permuted copies and broadcasts; an implementation uses a fast path (memcpy, tiled transpose) if possible.
WEFT_KERNEL(copy, const Queue& queue, const View& y, const View& x);

}  // namespace weft::kernels
