// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// y = softmax(x) or log_softmax(x) over the last dimension; contiguous [..., C], one floating dtype.
/// Computed in f32 with the row's maximum subtracted.
WEFT_KERNEL(softmax_forward, const Queue& queue, const View& y, const View& x, bool log);

/// softmax: dx = y (dy - sum(dy y)); log_softmax: dx = dy - exp(y) sum(dy). y is the forward's output.
WEFT_KERNEL(softmax_backward, const Queue& queue, const View& dx, const View& dy, const View& y, bool log);

}  // namespace weft::kernels
