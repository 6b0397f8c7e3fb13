// SPDX-License-Identifier: Apache-2.0
#include "nn/linear.h"

#include "core/ops/linear.h"

namespace weft::nn {

Linear::Linear(int64_t in, int64_t out, LinearOptions options) {
  WEFT_CHECK(in > 0 && out > 0, "Linear: expected positive sizes, got in = ", in, ", out = ", out);
  weight = Tensor::empty({out, in});
  init_weight_(weight, options.init);
  weight.requires_grad_();
  if (!options.bias) return;
  bias = Tensor::empty({out});
  init_bias_(bias, weight, options.init);
  bias.requires_grad_();
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight, bias); }

Tensor Linear::forward_gelu(const Tensor& x, Gelu approximate) const {
  return with_hooks(x, [&] { return linear_gelu(x, weight, bias, approximate); });
}

void Linear::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

int64_t Linear::flops(const Shape&, const Shape& y) const { return 2 * y.numel() * weight.size(1); }

}  // namespace weft::nn
