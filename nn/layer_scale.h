// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/binary.h"
#include "nn/module.h"

namespace weft::nn {

/// y = gamma x with one trained factor per channel, the last dimension (Touvron et al. 2021, "Going deeper with image
/// transformers", section 2).
struct LayerScale : Module {
  Tensor gamma;

  LayerScale(int64_t size, double init) : gamma(Tensor::full({size}, init).requires_grad_()) {}
  Tensor forward(const Tensor& x) const override { return mul(x, gamma.to(x.dtype())); }
  void fields(Visitor& v) override { v("gamma", gamma); }
};

}  // namespace weft::nn
