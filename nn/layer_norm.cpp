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

namespace {

/// norm.add(x, residual), where `fused` computes sum and norm of one dtype.
template <class Norm, class Fused>
NormedSum added(const Norm& norm, const Tensor& x, const Tensor& residual, const Fused& fused) {
  NormedSum result;
  result.y = norm.with_hooks(x, [&] {
    if (x.dtype() == residual.dtype()) {
      result = fused();
    } else {  // the sum has the wider dtype
      result.sum = x + residual;
      result.y = norm.forward(result.sum);
    }
    return result.y;
  });
  return result;
}

}  // namespace

NormedSum LayerNorm::add(const Tensor& x, const Tensor& residual) const {
  return added(*this, x, residual, [&] { return add_layer_norm(x, residual, weight, bias, eps); });
}

NormedSum RMSNorm::add(const Tensor& x, const Tensor& residual) const {
  return added(*this, x, residual, [&] { return add_rms_norm(x, residual, weight, eps); });
}

void LayerNorm::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

}  // namespace weft::nn
