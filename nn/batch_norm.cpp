// SPDX-License-Identifier: Apache-2.0
#include "nn/batch_norm.h"

#include "core/capture.h"
#include "core/ops/conv2d_norm.h"

namespace weft::nn {

BatchNorm2d::BatchNorm2d(int64_t channels, BatchNorm2dOptions norm_options) : options(norm_options) {
  WEFT_CHECK(channels > 0, "BatchNorm2d: expected a positive number of channels, got ", channels);
  if (options.affine) {
    weight = Tensor::ones({channels}).requires_grad_();
    bias = Tensor::zeros({channels}).requires_grad_();
  }
  if (options.track_running_stats) {
    running_mean = Tensor::zeros({channels});
    running_var = Tensor::ones({channels});
  }
}

BatchNormOptions BatchNorm2d::arguments(const Fused& fused) const {
  return {.training = is_training() || !running_mean.defined(),
          .eps = options.eps,
          .momentum = options.momentum,
          .relu = fused.relu,
          .residual = fused.residual};
}

Tensor BatchNorm2d::normalize(const Tensor& x, const BatchNormOptions& arguments) const {
  if (is_training() && running_mean.defined()) on_each_run([this] { ++num_batches_tracked; });
  if (is_training() && training_norm) return training_norm(x, weight, bias, running_mean, running_var, arguments);
  return batch_norm(x, weight, bias, running_mean, running_var, arguments);
}

Tensor BatchNorm2d::forward(const Tensor& x, const Fused& fused) const { return normalize(x, arguments(fused)); }

Tensor BatchNorm2d::behind(const Conv2d& conv, const Tensor& x, const Fused& fused) const {
  if (has_hooks() || conv.has_hooks()) return (*this)(conv(x), fused);
  BatchNormOptions norm = arguments(fused);
  if (!norm.training)
    return conv2d_norm(x, conv.weight, conv.bias, conv.arguments, weight, bias, running_mean, running_var, norm);
  const auto [y, statistics] = conv2d_statistics(x, conv.weight, conv.bias, conv.arguments);
  norm.statistics = statistics;
  return normalize(y, norm);
}

Tensor BatchNorm2d::operator()(const Tensor& x, const Fused& fused) const {
  return with_hooks(x, [&] { return forward(x, fused); });
}

void BatchNorm2d::fields(Visitor& v) {
  v("weight", weight);
  v("bias", bias);
  v.buffer("running_mean", running_mean);
  v.buffer("running_var", running_var);
  if (running_mean.defined()) v.counter("num_batches_tracked", num_batches_tracked);
}

}  // namespace weft::nn
