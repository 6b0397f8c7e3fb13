// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_norm.h"

#include "core/ops/layer_norm.h"

namespace weft::nn {

LayerNorm::LayerNorm(int64_t size, double norm_eps) : eps(norm_eps) {
  WEFT_CHECK(size > 0, "LayerNorm: expected a positive size, got ", size);
  weight = Tensor::ones({size}).requires_grad_();
  bias = Tensor::zeros({size}).requires_grad_();
}

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }

void LayerNorm::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

}  // namespace weft::nn
