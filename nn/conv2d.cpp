// SPDX-License-Identifier: Apache-2.0
#include "nn/conv2d.h"

namespace weft::nn {

void make_conv_weights(Tensor& weight, Tensor& bias, const ConvSizes& s, const Conv2dWeights& weights) {
  Shape sizes{s.outer};
  bool is_positive = s.in > 0 && s.out > 0;
  std::string kernel;
  for (const int64_t side : s.kernel) {
    is_positive &= side > 0;
    kernel += str(kernel.empty() ? "" : "x", side);
    sizes.push_back(side);
  }
  WEFT_CHECK(is_positive, s.layer, ": expected positive sizes, got in = ", s.in, ", out = ", s.out,
             ", kernel = ", kernel);
  WEFT_CHECK(s.groups > 0 && s.in % s.groups == 0 && s.out % s.groups == 0, s.layer, ": groups = ", s.groups,
             " must divide in = ", s.in, " and out = ", s.out);
  sizes.push_back(s.inner / s.groups);
  weight = Tensor::empty(sizes);
  init_weight_(weight, weights.init);
  weight.requires_grad_();
  if (!weights.bias) return;
  bias = Tensor::empty({s.out});
  init_bias_(bias, weight, weights.init);
  bias.requires_grad_();
}

Conv2d::Conv2d(int64_t in, int64_t out, Size2d kernel, Conv2dOptions geometry, Conv2dWeights weights)
    : options(geometry) {
  make_conv_weights(weight, bias,
                    {"Conv2d", in, out, {kernel.h, kernel.w}, options.groups, /*outer=*/out, /*inner=*/in}, weights);
}

Tensor Conv2d::forward(const Tensor& x) const { return conv2d(x, weight, bias, options); }

void Conv2d::fields(Visitor& v) {
  v("weight", weight, Layout::ohwi);
  v("bias", bias);
}

int64_t Conv2d::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * (weight.numel() / weight.size(0)); }

}  // namespace weft::nn
