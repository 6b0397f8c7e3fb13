// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/contracts/conv2d.h"
#include "kernels/kernel.h"

namespace weft::kernels {

struct Pool2dArguments {
  Size2d kernel = 2, stride = 2, padding = 0;
  bool count_include_pad = true;  ///< average pooling: padded zeros count in the divisor
};

// x [N, H, W, C], y [N, P, Q, C]; contiguous, one floating dtype. P, Q as for conv2d, or one more: the last window is
// then clipped to x (or, if padding counts, to the padded x).

/// y = maximum of each window; index (i32, y's sizes) = the maximum's h * W + w in its image, the first on ties; NaN
/// propagates.
WEFT_KERNEL(max_pool2d_forward, const Queue& queue, const View& y, const View& index, const View& x,
            Pool2dArguments arguments);

/// dx = 0, then each dy is added at its maximum's index. Deterministic (a gather, not atomics).
WEFT_KERNEL(max_pool2d_backward, const Queue& queue, const View& dx, const View& dy, const View& index,
            Pool2dArguments arguments);

WEFT_KERNEL(avg_pool2d_forward, const Queue& queue, const View& y, const View& x, Pool2dArguments arguments);
WEFT_KERNEL(avg_pool2d_backward, const Queue& queue, const View& dx, const View& dy, Pool2dArguments arguments);

/// y[p, q] = mean over rows floor(p H / P) … ceil((p + 1) H / P) - 1, columns likewise, for any P, Q >= 1.
WEFT_KERNEL(adaptive_avg_pool2d_forward, const Queue& queue, const View& y, const View& x);
WEFT_KERNEL(adaptive_avg_pool2d_backward, const Queue& queue, const View& dx, const View& dy);

}  // namespace weft::kernels
