// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"
#include "kernels/number.h"

namespace weft::kernels {

/// Height and width: `{3, 5}`, or one number for both. Not an aggregate: as a field of one, 3 would be {3, 0}.
struct Size2d {
  int64_t h, w;
  template <WholeType T>
  constexpr Size2d(T both) : h(static_cast<int64_t>(both)), w(h) {}  // NOLINT(google-explicit-constructor)
  constexpr Size2d(int64_t height, int64_t width) : h(height), w(width) {}
  bool operator==(const Size2d&) const = default;
};

struct Conv2dArguments {
  Size2d stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
};

// x [N, H, W, C], w [O, R, S, C / groups] (OHWI), y [N, P, Q, O]; all contiguous, one dtype of f32, f64, bf16, f16.
// P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, Q likewise. Accumulates in f32 (f64 for f64).
// Depthwise is groups == C == O.

/// y = conv2d(x, w) + bias; bias [O] of y's dtype, or none.
WEFT_KERNEL(conv2d_forward, const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
            Conv2dArguments arguments);

struct Conv2dNormArguments {
  Conv2dArguments conv;
  double eps = 1e-5;
  bool relu = false;
};

/// y = relu?((conv2d(x, w) + bias - mean) / sqrt(var + eps) weight + norm_bias + residual?): a convolution with the
/// next batch_norm_inference fused, on GPUs in a single pass over y, before any rounding of the accumulators. mean,
/// var, weight and norm_bias [O] are f32 (f64 for f64 x); residual is contiguous, of y's sizes and dtype, and apart
/// from y. bias, weight, norm_bias and residual may be none.
WEFT_KERNEL(conv2d_norm, const Queue& queue, const View& y, const View& x, const View& w, const View& bias,
            const View& mean, const View& var, const View& weight, const View& norm_bias, const View& residual,
            Conv2dNormArguments arguments);

/// conv2d_forward, and part [2 O + 1] = batch_norm_statistics of y (at least one position): on GPUs from the
/// accumulators in registers, unless K is split.
WEFT_KERNEL(conv2d_statistics, const Queue& queue, const View& y, const View& part, const View& x, const View& w,
            const View& bias, Conv2dArguments arguments);

/// dx = gradient with respect to x, plus `dx_in`, x's gradient from elsewhere (none, or contiguous as dx and apart
/// from it).
WEFT_KERNEL(conv2d_backward_input, const Queue& queue, const View& dx, const View& dy, const View& w, const View& dx_in,
            Conv2dArguments arguments);

/// dw = gradient with respect to w; dw has the inputs' dtype or f32.
WEFT_KERNEL(conv2d_backward_weight, const Queue& queue, const View& dw, const View& dy, const View& x,
            Conv2dArguments arguments);

/// Throws unless the vectors and the residual of conv2d_norm fit y.
inline void check_norm(const View& y, const View& mean, const View& var, const View& weight, const View& norm_bias,
                       const View& residual) {
  const DType dtype = y.dtype == DType::f64 ? DType::f64 : DType::f32;
  const auto fits = [&](const View& v) {
    return v.rank == 1 && v.numel() == y.sizes[3] && v.dtype == dtype && v.is_contiguous();
  };
  WEFT_CHECK(fits(mean) && fits(var) && (!weight || fits(weight)) && (!norm_bias || fits(norm_bias)),
             "conv2d_norm: expected mean, var, weight and norm_bias ", dtype, "[", y.sizes[3], "], got ", mean, ", ",
             var, ", ", weight, " and ", norm_bias);
  WEFT_CHECK(!residual || (residual.same_sizes(y) && residual.dtype == y.dtype && residual.is_contiguous()),
             "conv2d_norm: expected a residual ", y, ", got ", residual);
}

/// Throws unless `part` fits the statistics of y.
inline void check_part(const View& y, const View& part) {
  const DType dtype = y.dtype == DType::f64 ? DType::f64 : DType::f32;
  WEFT_CHECK(y.sizes[0] * y.sizes[1] * y.sizes[2] > 0 && part.numel() == 2 * y.sizes[3] + 1 && part.dtype == dtype &&
                 part.is_contiguous(),
             "conv2d_statistics: expected positions and a part ", dtype, "[", 2 * y.sizes[3] + 1, "], got ", y, " and ",
             part);
}

/// Throws unless `dx_in` may be added to dx.
inline void check_dx_in(const View& dx, const View& dx_in) {
  WEFT_CHECK(!dx_in || (dx_in.same_sizes(dx) && dx_in.dtype == dx.dtype && dx_in.is_contiguous()),
             "conv2d_backward_input: expected ", dx, " to add, got ", dx_in);
}

}  // namespace weft::kernels
