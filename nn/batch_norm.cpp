// SPDX-License-Identifier: Apache-2.0
#include "nn/batch_norm.h"

#include "core/capture.h"

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
  return {.training = uses_batch_statistics(),
          .eps = options.eps,
          .momentum = options.momentum,
          .relu = fused.relu,
          .residual = fused.residual,
          .statistics = fused.statistics};
}

Tensor BatchNorm2d::forward(const Tensor& x, const Fused& fused) const {
  if (is_training() && running_mean.defined()) on_each_run([this] { ++num_batches_tracked; });
  if (is_training() && training_norm)
    return training_norm(x, weight, bias, running_mean, running_var, arguments(fused));
  return batch_norm(x, weight, bias, running_mean, running_var, arguments(fused));
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
