// SPDX-License-Identifier: Apache-2.0
#include "nn/conv2d.h"

namespace weft::nn {

Conv2d::Conv2d(int64_t in, int64_t out, Size2d kernel, Conv2dOptions geometry, Conv2dWeights weights)
    : options(geometry) {
  WEFT_CHECK(in > 0 && out > 0 && kernel.h > 0 && kernel.w > 0, "Conv2d: expected positive sizes, got in = ", in,
             ", out = ", out, ", kernel = ", kernel.h, "x", kernel.w);
  WEFT_CHECK(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0,
             "Conv2d: groups = ", options.groups, " must divide in = ", in, " and out = ", out);
  weight = Tensor::empty({out, kernel.h, kernel.w, in / options.groups});
  init_weight_(weight, weights.init);
  weight.requires_grad_();
  if (!weights.bias) return;
  bias = Tensor::empty({out});
  init_bias_(bias, weight, weights.init);
  bias.requires_grad_();
}

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }

void Conv2d::fields(Visitor& v) {
  v("weight", weight, Layout::ohwi);
  v("bias", bias);
}

int64_t Conv2d::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * (weight.numel() / weight.size(0)); }

}  // namespace weft::nn
