// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/conv2d.h"
#include "core/tensor.h"

namespace weft {

/// Depth, height and width, or one number for all three.
struct Size3d {
  int64_t d, h, w;
  template <WholeType T>
  constexpr Size3d(T all) : d(static_cast<int64_t>(all)), h(d), w(d) {}  // NOLINT(google-explicit-constructor)
  constexpr Size3d(int64_t depth, int64_t height, int64_t width) : d(depth), h(height), w(width) {}
};

struct Conv3dOptions {
  Size3d stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
};

/// Cross-correlation of volumes x [N, D, H, W, C] with w [O, T, R, S, C / groups], plus bias [O]: y [N, E, P, Q, O],
/// sizes as in conv2d(). The T slices that a depth of y sees become channels of an image. A single conv2d() with T C
/// channels then computes y. That input takes up to T times x's memory. Errors:
/// sizes that do not fit.
Tensor conv3d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv3dOptions& options = {});

}  // namespace weft
