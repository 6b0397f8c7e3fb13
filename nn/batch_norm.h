// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/ops/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/module.h"

namespace weft::nn {

struct BatchNorm2dOptions {
  double eps = 1e-5;
  double momentum = 0.1;            ///< weight of the batch in the running statistics
  bool affine = true;               ///< with weight and bias
  bool track_running_stats = true;  ///< else evaluation uses the batch's statistics too
};

/// y = (x - mean) / sqrt(var + eps) weight + bias per channel: of the batch in training, of the running statistics in
/// evaluation (Ioffe and Szegedy 2015). x [N, H, W, C] or [N, C].
struct BatchNorm2d : Module {
  /// What runs in the same kernel behind the norm: y = relu?(norm(x) + residual?).
  struct Fused {
    bool relu = false;
    Tensor residual = {};
  };

  /// What normalises a batch in training: batch_norm(), or one whose statistics are those of several processes.
  using TrainingNorm =
      std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                           const Tensor& running_var, const BatchNormOptions& options)>;

  Tensor weight, bias, running_mean, running_var;
  mutable int64_t num_batches_tracked = 0;  ///< batches seen in training, those of a graph's replays too
  BatchNorm2dOptions options;
  TrainingNorm training_norm;  ///< empty: batch_norm()

  explicit BatchNorm2d(int64_t channels, BatchNorm2dOptions options = {});
  Tensor forward(const Tensor& x) const override { return forward(x, Fused{}); }
  Tensor forward(const Tensor& x, const Fused& fused) const;
  using Module::operator();
  Tensor operator()(const Tensor& x, const Fused& fused) const;
  /// (*this)(conv(x), fused) with fewer passes over memory: in evaluation without gradients one kernel; in training the
  /// convolution finds the statistics. As two calls where a hook of either wants to see them.
  Tensor behind(const Conv2d& conv, const Tensor& x, const Fused& fused) const;
  void fields(Visitor& v) override;

 private:
  BatchNormOptions arguments(const Fused& fused) const;
  Tensor normalize(const Tensor& x, const BatchNormOptions& arguments) const;
};

}  // namespace weft::nn
