// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

struct Size2d {
  int64_t h = 0, w = 0;
  bool operator==(const Size2d&) const = default;
};

struct Conv2dArguments {
  Size2d stride{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
};

// x [N, H, W, C], w [O, R, S, C / groups] (OHWI), y [N, P, Q, O]; all contiguous, one dtype of f32, f64, bf16, f16.
// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, Q alike. Accumulates in f32 (f64 for f64).
// Depthwise is groups == C == O.

/// y = conv2d(x, w) + bias; bias [O] of y's dtype, or none.
WEFT_KERNEL(conv2d_forward, const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
            Conv2dArguments arguments);

/// dx = gradient with respect to x, plus `more`, what came for x from elsewhere (none, or contiguous as dx and apart
/// from it).
WEFT_KERNEL(conv2d_backward_input, const Queue& queue, const View& dx, const View& dy, const View& w, const View& more,
            Conv2dArguments arguments);

/// dw = gradient with respect to w; dw has the inputs' dtype or f32.
WEFT_KERNEL(conv2d_backward_weight, const Queue& queue, const View& dw, const View& dy, const View& x,
            Conv2dArguments arguments);

/// Throws unless `more` may be added to dx.
inline void check_more(const View& dx, const View& more) {
  WEFT_CHECK(!more || (more.same_sizes(dx) && more.dtype == dx.dtype && more.is_contiguous()),
             "conv2d_backward_input: expected ", dx, " to add, got ", more);
}

}  // namespace weft::kernels
