// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/gelu.h"
#include "core/ops/leaky_relu.h"
#include "core/ops/unary.h"
#include "nn/module.h"

namespace weft::nn {

/// y = max(0, x).
struct ReLU : Module {
  Tensor forward(const Tensor& x) const override { return relu(x); }
};

/// y = x where x > 0, else slope x.
struct LeakyReLU : Module {
  double slope;
  explicit LeakyReLU(double negative_slope = 0.01) : slope(negative_slope) {}
  Tensor forward(const Tensor& x) const override { return leaky_relu(x, slope); }
};

/// y = x Phi(x), exactly or by tanh (Hendrycks and Gimpel 2016).
struct GELU : Module {
  Gelu approximate;
  explicit GELU(Gelu form = Gelu::erf) : approximate(form) {}
  Tensor forward(const Tensor& x) const override { return gelu(x, approximate); }
};

}  // namespace weft::nn
