// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/unary.h"
#include "nn/linear.h"

namespace weft::nn {

/// y = fc2(gelu(fc1(x))) over the last dimension, `hidden` wide in between (Vaswani et al. 2017, section 3.3).
struct Mlp : Module {
  Linear fc1, fc2;

  Mlp(int64_t width, int64_t hidden);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// y = w3(silu(a) b), [a, b] = w12(x) (Shazeer 2020, "GLU variants improve transformer").
struct SwiGlu : Module {
  Linear w12, w3;

  SwiGlu(int64_t width, int64_t hidden);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

}  // namespace weft::nn
