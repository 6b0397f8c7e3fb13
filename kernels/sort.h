// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// The first k of each row of x [..., n] in order, k <= n: values [..., k] and their indices in x, [..., k] (i64).
/// Stable: equal elements keep their order. NaN is larger than every number, all NaN are equal, and so are 0 and -0.
/// Contiguous; any dtype; n < 2^31.
WEFT_KERNEL(sort, const Queue& queue, const View& values, const View& indices, const View& x, bool descending);

}  // namespace weft::kernels
