// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layer_norm.h"
#include "nn/module.h"

namespace weft::nn {

/// group_norm() of x [N, ..., channels] with a weight and a bias per channel. `groups` equal to `channels` is instance
/// norm.
struct GroupNorm : Module {
  int64_t groups;
  double eps;
  Tensor weight, bias;

  GroupNorm(int64_t group_count, int64_t channels, double norm_eps = 1e-5) : groups(group_count), eps(norm_eps) {
    WEFT_CHECK(groups > 0 && channels > 0 && channels % groups == 0, "GroupNorm: ", channels,
               " channels do not divide into ", groups, " groups");
    weight = Tensor::ones({channels}).requires_grad_();
    bias = Tensor::zeros({channels}).requires_grad_();
  }
  Tensor forward(const Tensor& x) const override { return group_norm(x, groups, weight, bias, eps); }
  void fields(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace weft::nn
