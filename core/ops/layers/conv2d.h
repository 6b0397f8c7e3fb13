// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/batch_norm.h"
#include "core/tensor.h"
#include "kernels/contracts/conv2d.h"

namespace weft {

using kernels::Size2d;

/// Stride, padding, dilation (each {h, w}, or one number for both) and groups.
using Conv2dOptions = kernels::Conv2dArguments;

/// Cross-correlation of x [N, H, W, C] with w [O, R, S, C / groups], plus bias [O]. y is [N, P, Q, O].
///   y[n,p,q,o] = bias[o] + sum over r, s, c: x[n, p stride + r dilation - padding, …, c] w[o,r,s,c].
///   P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, Q likewise.
/// Under autocast in the low precision. Errors: sizes that do not fit, two dtypes, two devices.
Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv2dOptions& options = {});

/// A convolution and its statistics per channel, [2 O + 1]: means over all places, sums of squared distances from them,
/// the number of places; f32 (f64 for f64 y). Undefined where y is empty. They carry no gradient.
struct Conv2dStatistics {
  Tensor y, statistics;
};

/// conv2d() for batch_norm() in training (BatchNormOptions::statistics): on GPUs the statistics are found while y is
/// still in registers, and the norm has one pass less to do.
Conv2dStatistics conv2d_statistics(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                                   const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

/// Cross-correlation of x [N, L, C] with w [O, R, C / groups], plus bias [O]: y [N, P, O], P = (L + 2 padding -
/// dilation (R - 1) - 1) / stride + 1. This is conv2d() of images of one row. Errors: sizes that do not fit.
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv1dOptions& options = {});

/// batch_norm(conv2d(x, w, bias, conv), weight, shift, running_mean, running_var, norm) in evaluation. Where no
/// gradient is recorded this is one kernel, which normalises the sums before they are rounded to y's dtype. Errors:
/// those of both; norm.training.
Tensor conv2d_norm(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& conv,
                   const Tensor& weight, const Tensor& shift, const Tensor& running_mean, const Tensor& running_var,
                   const BatchNormOptions& norm);

}  // namespace weft
