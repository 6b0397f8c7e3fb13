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

// As above for sequences x [N, L, C] and volumes x [N, D, H, W, C].
#define WEFT_POOL(layer, op, Options)                                         \
  struct layer : Module {                                                     \
    Options options;                                                          \
    explicit layer(Options pool) : options(pool) {}                           \
    Tensor forward(const Tensor& x) const override { return op(x, options); } \
  };
WEFT_POOL(MaxPool1d, max_pool1d, Pool1dOptions)
WEFT_POOL(AvgPool1d, avg_pool1d, Pool1dOptions)
WEFT_POOL(AdaptiveAvgPool1d, adaptive_avg_pool1d, int64_t)
WEFT_POOL(AdaptiveMaxPool1d, adaptive_max_pool1d, int64_t)
WEFT_POOL(AdaptiveMaxPool2d, adaptive_max_pool2d, Size2d)
WEFT_POOL(AdaptiveMaxPool3d, adaptive_max_pool3d, Size3d)
WEFT_POOL(MaxPool3d, max_pool3d, Pool3dOptions)
WEFT_POOL(AvgPool3d, avg_pool3d, Pool3dOptions)
WEFT_POOL(AdaptiveAvgPool3d, adaptive_avg_pool3d, Size3d)
#undef WEFT_POOL

}  // namespace weft::nn
