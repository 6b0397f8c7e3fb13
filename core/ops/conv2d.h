// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/size2d.h"
#include "core/tensor.h"

namespace weft {

/// Stride, padding, dilation (each {h, w}) and groups.
using Conv2dOptions = kernels::Conv2dArguments;

/// Cross-correlation of x [N, H, W, C] with w [O, R, S, C / groups], plus bias [O]: y [N, P, Q, O],
///   y[n,p,q,o] = bias[o] + sum over r, s, c of x[n, p stride + r dilation - padding, …, c] w[o,r,s,c],
///   P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, Q alike.
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

}  // namespace weft
