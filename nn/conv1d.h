// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/conv2d.h"
#include "nn/conv2d.h"

namespace weft::nn {

/// y [N, P, out] = convolution of x [N, L, in] with weight [out, R, in / groups]; files hold [out, in / groups, R].
struct Conv1d : Module {
  Tensor weight, bias;
  Conv1dOptions options;

  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv1dOptions geometry = {}, Conv2dWeights weights = {})
      : options(geometry) {
    make_conv_weights(weight, bias, {"Conv1d", in, out, {kernel}, options.groups, /*outer=*/out, /*inner=*/in},
                      weights);
  }
  Tensor forward(const Tensor& x) const override { return conv1d(x, weight, bias, options); }
  void fields(Visitor& v) override {
    v("weight", weight, Layout::ohwi);
    v("bias", bias);
  }
  int64_t flops(const Shape&, const Shape& y) const override {
    return 2 * y.numel() * (weight.numel() / weight.size(0));
  }
};

}  // namespace weft::nn
