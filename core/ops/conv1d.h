// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

/// Cross-correlation of x [N, L, C] with w [O, R, C / groups], plus bias [O]: y [N, P, O], P = (L + 2 padding -
/// dilation (R - 1) - 1) / stride + 1. It is conv2d() of images of one row. Errors: sizes that do not fit.
Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias = {}, const Conv1dOptions& options = {});

}  // namespace weft
