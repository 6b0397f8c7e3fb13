// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layer_norm.h"
#include "nn/module.h"

namespace weft::nn {

/// y = (x - mean) / sqrt(var + eps) weight + bias over the last dimension (Ba et al. 2016).
struct LayerNorm : Module {
  Tensor weight, bias;
  double eps;

  explicit LayerNorm(int64_t size, double eps = 1e-5);
  Tensor forward(const Tensor& x) const override;
  /// x + residual and its norm in one pass over memory (core/ops/layer_norm.h). Hooks see x and the norm.
  NormedSum add(const Tensor& x, const Tensor& residual) const;
  void fields(Visitor& v) override;
};

}  // namespace weft::nn
