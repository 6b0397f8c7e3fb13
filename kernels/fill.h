// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y = value, for any dtype and any strides. Integers and bool take the truncated value.
WEFT_KERNEL(fill, const Queue& queue, const View& y, double value);

/// y[i] = start + i * step over a contiguous y of any dtype but bool.
WEFT_KERNEL(arange, const Queue& queue, const View& y, double start, double step);

}  // namespace weft::kernels
