// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_norm.h"

#include "core/autocast.h"
#include "core/ops/binary.h"
#include "core/promotion.h"

namespace weft::nn {

LayerNorm::LayerNorm(Integer size, double norm_eps) : eps(norm_eps) {
  WEFT_CHECK(size > 0, "LayerNorm: expected a positive size, got ", size);
  weight = Tensor::ones({size}).requires_grad_();
  bias = Tensor::zeros({size}).requires_grad_();
}

namespace {

std::optional<DType> output_dtype(const LayerNorm& norm, const Tensor& x) {
  return norm.feeds_product && x.dtype() == DType::f32 ? autocast_dtype() : std::nullopt;
}

/// norm.add(x, residual); `fused` computes sum and norm in x's dtype.
template <class Norm, class Fused>
NormedSum added(const Norm& norm, const Tensor& x, const Tensor& residual, const Fused& fused) {
  NormedSum result;
  result.y = norm.with_hooks(x, [&] {
    if (promote(x.dtype(), residual.dtype()) == x.dtype()) {
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

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps, output_dtype(*this, x)); }

NormedSum LayerNorm::add(const Tensor& x, const Tensor& residual) const {
  return added(*this, x, residual,
               [&] { return add_layer_norm(x, residual, weight, bias, eps, output_dtype(*this, x)); });
}

NormedSum RMSNorm::add(const Tensor& x, const Tensor& residual) const {
  return added(*this, x, residual, [&] { return add_rms_norm(x, residual, weight, eps); });
}

void LayerNorm::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
}

RMSNorm::RMSNorm(Integer size, double norm_eps) : eps(norm_eps) {
  WEFT_CHECK(size > 0, "RMSNorm: expected a positive size, got ", size);
  weight = Tensor::ones({size}).requires_grad_();
}

GroupNorm::GroupNorm(Integer group_count, Integer channels, double norm_eps) : groups(group_count), eps(norm_eps) {
  WEFT_CHECK(groups > 0 && channels > 0 && channels % groups == 0, "GroupNorm: ", channels,
             " channels do not divide into ", groups, " groups");
  weight = Tensor::ones({channels}).requires_grad_();
  bias = Tensor::zeros({channels}).requires_grad_();
}

InstanceNorm::InstanceNorm(Integer channel_count, InstanceNormOptions options)
    : channels(channel_count), eps(options.eps) {
  WEFT_CHECK(channels > 0, "InstanceNorm: expected a positive number of channels, got ", channels);
  if (!options.affine) return;
  weight = Tensor::ones({channels}).requires_grad_();
  bias = Tensor::zeros({channels}).requires_grad_();
}

Tensor InstanceNorm::forward(const Tensor& x) const {
  int64_t elements = 1;
  for (int64_t d = 1; d + 1 < x.dim(); ++d) elements *= x.size(d);
  WEFT_CHECK(x.dim() < 2 || elements != 1, "InstanceNorm: expected more than one spatial element, got ", x);
  return group_norm(x, channels, weight, bias, eps);
}

}  // namespace weft::nn
