// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/conv3d.h"
#include "nn/conv2d.h"

namespace weft::nn {

/// y [N, E, P, Q, out] = convolution of volumes x [N, D, H, W, in] with weight [out, T, R, S, in / groups]; files hold
/// [out, in / groups, T, R, S].
struct Conv3d : Module {
  Tensor weight, bias;
  Conv3dOptions options;

  Conv3d(int64_t in, int64_t out, Size3d kernel, Conv3dOptions geometry = {}, Conv2dWeights weights = {})
      : options(geometry) {
    make_conv_weights(weight, bias,
                      {"Conv3d", in, out, {kernel.d, kernel.h, kernel.w}, options.groups, /*outer=*/out, /*inner=*/in},
                      weights);
  }
  Tensor forward(const Tensor& x) const override { return conv3d(x, weight, bias, options); }
  void fields(Visitor& v) override {
    v("weight", weight, Layout::ohwi);
    v("bias", bias);
  }
  int64_t flops(const Shape&, const Shape& y) const override {
    return 2 * y.numel() * (weight.numel() / weight.size(0));
  }
};

}  // namespace weft::nn
