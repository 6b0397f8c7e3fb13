// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/conv2d.h"
#include "core/tensor.h"

namespace weft {

/// Depth, height and width.
struct Size3d {
  int64_t d = 1, h = 1, w = 1;
};

struct Conv3dOptions {
  Size3d stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  int64_t groups = 1;
};

/// Cross-correlation of volumes x [N, D, H, W, C] with w [O, T, R, S, C / groups], plus bias [O]: y [N, E, P, Q, O],
/// sizes as in conv2d(). The T slices that a depth of y sees become channels of one image, so that one conv2d() with T
/// C channels does all of the work, its sums in one accumulator; that input takes up to T times x's memory. Errors:
/// sizes that do not fit.
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv3dOptions& options = {});

}  // namespace weft
