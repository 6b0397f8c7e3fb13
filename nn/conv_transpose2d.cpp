// SPDX-License-Identifier: Apache-2.0
#include "nn/conv_transpose2d.h"

namespace weft::nn {

ConvTranspose2d::ConvTranspose2d(int64_t in, int64_t out, Size2d kernel, ConvTranspose2dOptions geometry,
                                 Conv2dWeights weights)
    : options(geometry) {
  make_conv_weights(weight, bias,
                    {"ConvTranspose2d", in, out, {kernel.h, kernel.w}, options.groups, /*outer=*/in, /*inner=*/out},
                    weights);
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
