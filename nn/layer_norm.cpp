// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_norm.h"

#include "core/ops/binary.h"

namespace weft::nn {

LayerNorm::LayerNorm(Integer size, double norm_eps) : eps(norm_eps) {
  WEFT_CHECK(size > 0, "LayerNorm: expected a positive size, got ", size);
  weight = Tensor::ones({size}).requires_grad_();
  bias = Tensor::zeros({size}).requires_grad_();
}

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }

NormedSum LayerNorm::add(const Tensor& x, const Tensor& residual) const {
  NormedSum result;
  result.y = with_hooks(x, [&] {
    if (x.dtype() == residual.dtype()) {
      result = add_layer_norm(x, residual, weight, bias, eps);
    } else {  // the sum has the wider dtype
      result.sum = x + residual;
      result.y = forward(result.sum);
    }
    return result.y;
  });
  return result;
}

void LayerNorm::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

}  // namespace weft::nn
