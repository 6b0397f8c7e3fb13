// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layer_norm.h"
#include "nn/module.h"

namespace weft::nn {

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;  ///< a weight and a bias per channel
};

/// The norm of each channel of each image (or row, or volume): x [N, ..., channels] (Ulyanov et al. 2016). PyTorch's
/// InstanceNorm1d to 3d, without running statistics.
struct InstanceNorm : Module {
  int64_t channels;
  double eps;
  Tensor weight, bias;

  explicit InstanceNorm(int64_t channel_count, InstanceNormOptions options = {})
      : channels(channel_count), eps(options.eps) {
    WEFT_CHECK(channels > 0, "InstanceNorm: expected a positive number of channels, got ", channels);
    if (!options.affine) return;
    weight = Tensor::ones({channels}).requires_grad_();
    bias = Tensor::zeros({channels}).requires_grad_();
  }
  Tensor forward(const Tensor& x) const override { return group_norm(x, channels, weight, bias, eps); }
  void fields(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace weft::nn
