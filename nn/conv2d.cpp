// SPDX-License-Identifier: Apache-2.0
#include "nn/conv2d.h"

namespace weft::nn {

void make_conv2d_weights(Tensor& weight, Tensor& bias, const Conv2dSizes& s, const Conv2dWeights& weights) {
  WEFT_CHECK(s.in > 0 && s.out > 0 && s.kernel.h > 0 && s.kernel.w > 0, s.layer,
             ": expected positive sizes, got in = ", s.in, ", out = ", s.out, ", kernel = ", s.kernel.h, "x", s.kernel.w);
  WEFT_CHECK(s.groups > 0 && s.in % s.groups == 0 && s.out % s.groups == 0, s.layer, ": groups = ", s.groups,
             " must divide in = ", s.in, " and out = ", s.out);
  weight = Tensor::empty({s.outer, s.kernel.h, s.kernel.w, s.inner / s.groups});
  init_weight_(weight, weights.init);
  weight.requires_grad_();
  if (!weights.bias) return;
  bias = Tensor::empty({s.out});
  init_bias_(bias, weight, weights.init);
  bias.requires_grad_();
}

Conv2d::Conv2d(int64_t in, int64_t out, Size2d kernel, Conv2dOptions geometry, Conv2dWeights weights)
    : options(geometry) {
  make_conv2d_weights(weight, bias, {"Conv2d", in, out, kernel, options.groups, /*outer=*/out, /*inner=*/in}, weights);
}

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }

void Conv2d::fields(Visitor& v) {
  v("weight", weight, Layout::ohwi);
  v("bias", bias);
}

int64_t Conv2d::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * (weight.numel() / weight.size(0)); }

}  // namespace weft::nn
