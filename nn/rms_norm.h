// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layer_norm.h"
#include "nn/module.h"

namespace weft::nn {

/// y = x / sqrt(mean(x^2) + eps) weight over the last dimension (Zhang and Sennrich 2019).
struct RMSNorm : Module {
  Tensor weight;
  double eps;

  explicit RMSNorm(int64_t size, double norm_eps = 1e-6) : eps(norm_eps) {
    WEFT_CHECK(size > 0, "RMSNorm: expected a positive size, got ", size);
    weight = Tensor::ones({size}).requires_grad_();
  }
  Tensor forward(const Tensor& x) const override { return rms_norm(x, weight, eps); }
  void fields(Visitor& v) override { v("weight", weight); }
};

}  // namespace weft::nn
