// SPDX-License-Identifier: Apache-2.0
#include "nn/conv_transpose2d.h"

namespace weft::nn {

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, Size2d kernel, ConvTranspose2dOptions geometry,
                                 Conv2dWeights weights)
    : options(geometry) {
  WEFT_CHECK(in > 0 && out > 0 && kernel.h > 0 && kernel.w > 0, "ConvTranspose2d: expected positive sizes, got in = ",
             in, ", out = ", out, ", kernel = ", kernel.h, "x", kernel.w);
  WEFT_CHECK(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0,
             "ConvTranspose2d: groups = ", options.groups, " must divide in = ", in, " and out = ", out);
  weight = Tensor::empty({in, kernel.h, kernel.w, out / options.groups});
  init_weight_(weight, weights.init);
  weight.requires_grad_();
  if (!weights.bias) return;
  bias = Tensor::empty({out});
  init_bias_(bias, weight, weights.init);
  bias.requires_grad_();
}

Tensor ConvTranspose2d::forward(const Tensor& x) const { return conv_transpose2d(x, weight, bias, options); }

void ConvTranspose2d::fields(Visitor& v) {
  v("weight", weight, Layout::ohwi);
  v("bias", bias);
}

int64_t ConvTranspose2d::flops(const Shape& x, const Shape&) const {
  return 2 * x.numel() * (weight.numel() / weight.size(0));
}

}  // namespace weft::nn
