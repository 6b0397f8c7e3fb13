// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/tensor.h"

namespace weft {

struct ConvTranspose2dOptions {
  Size2d stride = 1, padding = 0, dilation = 1;
  Size2d output_padding = 0;  ///< rows and columns more at the end, fewer than the stride
  int64_t groups = 1;
};

/// The transpose of conv2d with weight w [C, R, S, O / groups] (it takes O channels to C): x [N, H, W, C] becomes y [N,
/// P, Q, O], plus bias [O]:
/// P = (H - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1, Q likewise.
/// It computes by conv2d's gradient, and its gradient by conv2d. Under autocast in the low precision. Errors: sizes
/// that do not fit, two dtypes, two devices.
Tensor conv_transpose2d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                        const ConvTranspose2dOptions& options = {});

struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, output_padding = 0, groups = 1;
};
/// As above for sequences x [N, L, C] with w [C, K, O / groups].
Tensor conv_transpose1d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                        const ConvTranspose1dOptions& options = {});

struct ConvTranspose3dOptions {
  Size3d stride = 1, padding = 0, dilation = 1, output_padding = 0;
  int64_t groups = 1;
};
/// As above for volumes x [N, D, H, W, C] with w [C, T, R, S, O / groups]: T conv_transpose2d(), added up along the
/// depth.
Tensor conv_transpose3d(const Tensor& x, const Tensor& w, const Tensor& bias = {},
                        const ConvTranspose3dOptions& options = {});

}  // namespace weft
