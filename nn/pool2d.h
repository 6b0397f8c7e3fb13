// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/pool2d.h"
#include "nn/module.h"

namespace weft::nn {

/// The maximum of each window of x [N, H, W, C].
struct MaxPool2d : Module {
  Pool2dOptions options;
  explicit MaxPool2d(Pool2dOptions pool) : options(pool) {}
  Tensor forward(const Tensor& x) const override { return max_pool2d(x, options); }
};

/// The mean of each window of x [N, H, W, C].
struct AvgPool2d : Module {
  Pool2dOptions options;
  explicit AvgPool2d(Pool2dOptions pool) : options(pool) {}
  Tensor forward(const Tensor& x) const override { return avg_pool2d(x, options); }
};

/// Means over a grid of `out` windows that cover x [N, H, W, C]: y [N, out.h, out.w, C].
struct AdaptiveAvgPool2d : Module {
  Size2d out;
  explicit AdaptiveAvgPool2d(Size2d size) : out(size) {}
  Tensor forward(const Tensor& x) const override { return adaptive_avg_pool2d(x, out); }
};

}  // namespace weft::nn
