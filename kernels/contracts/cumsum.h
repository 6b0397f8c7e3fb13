// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y[r, i] = x[r, 0] + … + x[r, i] along the last dimension; `reverse`: x[r, i] + … + x[r, n - 1]. Contiguous, equal
/// sizes. y has x's dtype if that is floating, else i64 (x: i64, i32, u8, bool). Deterministic.
WEFT_KERNEL(cumsum, const Queue& queue, const View& y, const View& x, bool reverse);

}  // namespace weft::kernels
