// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"
#include "kernels/number.h"

namespace weft::kernels {

/// y = value, for any dtype and any strides. Integers and bool take the truncated value.
WEFT_KERNEL(fill, const Queue& queue, const View& y, Number value);

/// y[i] = start + i * step for a contiguous y of any dtype but bool. Integer y is computed in integers: start and step
/// must then be whole.
WEFT_KERNEL(arange, const Queue& queue, const View& y, Number start, Number step);

}  // namespace weft::kernels
