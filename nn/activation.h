// SPDX-License-Identifier: Apache-2.0
#pragma once
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

/// y = x where x > 0, else alpha (e^x - 1).
struct ELU : Module {
  double alpha;
  explicit ELU(double a = 1) : alpha(a) {}
  Tensor forward(const Tensor& x) const override { return elu(x, alpha); }
};

/// y = x sigmoid(x).
struct SiLU : Module {
  Tensor forward(const Tensor& x) const override { return silu(x); }
};

/// y = log(1 + e^x).
struct Softplus : Module {
  Tensor forward(const Tensor& x) const override { return softplus(x); }
};

/// y = x tanh(log(1 + e^x)).
struct Mish : Module {
  Tensor forward(const Tensor& x) const override { return mish(x); }
};

/// y = 1 / (1 + e^-x).
struct Sigmoid : Module {
  Tensor forward(const Tensor& x) const override { return sigmoid(x); }
};

/// y = tanh(x).
struct Tanh : Module {
  Tensor forward(const Tensor& x) const override { return tanh(x); }
};

/// y = x Phi(x), exactly or by tanh (Hendrycks and Gimpel 2016).
struct GELU : Module {
  Gelu approximate;
  explicit GELU(Gelu form = Gelu::erf) : approximate(form) {}
  Tensor forward(const Tensor& x) const override { return gelu(x, approximate); }
};

}  // namespace weft::nn
