// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/layer_norm.h"
#include "nn/module.h"

namespace weft::nn {

/// y = (x - mean) / sqrt(var + eps) weight + bias over the last dimension (Ba et al. 2016).
struct LayerNorm : Module {
  Tensor weight, bias;
  double eps;
  /// y is the input of one product and of nothing else: under Autocast it has that dtype at once, with the same bits.
  bool feeds_product = false;

  explicit LayerNorm(Integer size, double eps = 1e-5);
  Tensor forward(const Tensor& x) const override;
  /// x + residual and its norm in one pass over memory (core/ops/layers/layer_norm.h). Hooks see x and the norm.
  NormedSum add(const Tensor& x, const Tensor& residual) const;
  void fields(Visitor& v) override;
};

/// y = x / sqrt(mean(x^2) + eps) weight over the last dimension (Zhang and Sennrich 2019).
struct RMSNorm : Module {
  Tensor weight;
  double eps;

  explicit RMSNorm(Integer size, double norm_eps = 1e-6);
  Tensor forward(const Tensor& x) const override { return rms_norm(x, weight, eps); }
  /// As LayerNorm::add().
  NormedSum add(const Tensor& x, const Tensor& residual) const;
  void fields(Visitor& v) override { v("weight", weight); }
};

/// group_norm() of x [N, ..., channels] with a weight and a bias per channel. `groups` equal to `channels` is instance
/// norm.
struct GroupNorm : Module {
  int64_t groups;
  double eps;
  Tensor weight, bias;

  GroupNorm(Integer group_count, Integer channels, double norm_eps = 1e-5);
  Tensor forward(const Tensor& x) const override { return group_norm(x, groups, weight, bias, eps); }
  void fields(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;  ///< a weight and a bias per channel
};

/// The norm of each channel of each image (or row, or volume): x [N, ..., channels] (Ulyanov et al. 2016). PyTorch's
/// InstanceNorm1d to 3d, without running statistics. Errors: images of one element, which would all be 0.
struct InstanceNorm : Module {
  int64_t channels;
  double eps;
  Tensor weight, bias;

  explicit InstanceNorm(Integer channel_count, InstanceNormOptions options = {});
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace weft::nn
