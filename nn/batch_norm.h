// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "core/ops/layers/batch_norm.h"
#include "nn/conv.h"
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
  /// Ops fused into the norm's kernel: y = relu?(norm(x) + residual?).
  struct Fused {
    bool relu = false;
    Tensor residual = {};
    Tensor statistics = {};  ///< in training: x's, where its convolution has computed them (nn/batch_norm.h)
  };

  /// The function that normalises a batch in training: batch_norm(), or a norm with the statistics of several
  /// processes.
  using TrainingNorm =
      std::function<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                           const Tensor& running_var, const BatchNormOptions& options)>;

  Tensor weight, bias, running_mean, running_var;
  mutable int64_t num_batches_tracked = 0;  ///< batches seen in training, those of a graph's replays too
  BatchNorm2dOptions options;
  TrainingNorm training_norm;  ///< empty: batch_norm()

  explicit BatchNorm2d(Integer channels, BatchNorm2dOptions options = {});
  Tensor forward(const Tensor& x) const override { return forward(x, Fused{}); }
  Tensor forward(const Tensor& x, const Fused& fused) const;
  using Module::operator();
  Tensor operator()(const Tensor& x, const Fused& fused) const;
  /// Whether the batch is normalised by its own statistics: in training, and without running ones.
  bool uses_batch_statistics() const { return is_training() || !running_mean.defined(); }
  /// Options for batch_norm().
  BatchNormOptions arguments(const Fused& fused) const;
  void fields(Visitor& v) override;
};

/// As above for sequences [N, L, C], and [N, C].
struct BatchNorm1d : BatchNorm2d {
  using BatchNorm2d::BatchNorm2d;
  using BatchNorm2d::forward;
  Tensor forward(const Tensor& x) const override;
};
/// As above for volumes [N, D, H, W, C].
struct BatchNorm3d : BatchNorm2d {
  using BatchNorm2d::BatchNorm2d;
  using BatchNorm2d::forward;
  Tensor forward(const Tensor& x) const override;
};

/// relu?(bn(conv(x)) + residual?) with fewer passes over memory:
///   Tensor y = conv_bn(conv1, bn1, x, {.relu = true, .residual = shortcut});
/// In training the convolution's kernel computes the statistics that the norm needs; in evaluation without gradients
/// both are one kernel. Hooks of both modules run and change no kernel, but for those of Watch::tensors in such an
/// evaluation: it runs as two kernels, so that they see conv(x).
Tensor conv_bn(const Conv2d& conv, const BatchNorm2d& bn, const Tensor& x, const BatchNorm2d::Fused& fused = {});

}  // namespace weft::nn
