// SPDX-License-Identifier: Apache-2.0
#include "nn/batch_norm.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/layers/conv2d.h"

namespace weft::nn {

BatchNorm2d::BatchNorm2d(Integer channels, BatchNorm2dOptions norm_options) : options(norm_options) {
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
  const BatchNormOptions how = arguments(fused);
  Tensor y = is_training() && training_norm ? training_norm(x, weight, bias, running_mean, running_var, how)
                                            : batch_norm(x, weight, bias, running_mean, running_var, how);
  if (is_training() && running_mean.defined() && !recomputing()) on_each_run([this] { ++num_batches_tracked; });
  return y;
}

Tensor BatchNorm1d::forward(const Tensor& x) const {
  WEFT_CHECK(x.defined() && (x.dim() == 2 || x.dim() == 3), "BatchNorm1d: expected an input [N, L, C] or [N, C], got ",
             x);
  return forward(x.reshape({-1, x.size(-1)}), Fused{}).reshape(x.sizes());
}

Tensor BatchNorm3d::forward(const Tensor& x) const {
  WEFT_CHECK(x.defined() && x.dim() == 5, "BatchNorm3d: expected an input [N, D, H, W, C], got ", x);
  return forward(x.reshape({-1, x.size(-1)}), Fused{}).reshape(x.sizes());
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

namespace {

/// Both between their hooks, in one kernel: conv(x) is never made.
Tensor in_one_kernel(const Conv2d& conv, const BatchNorm2d& bn, const Tensor& x, const BatchNorm2d::Fused& fused) {
  Tensor y;
  conv.with_hooks(x, [&] {
    y = bn.with_hooks({}, [&] {
      return conv2d_norm(x, conv.weight, conv.bias, conv.options, bn.weight, bn.bias, bn.running_mean, bn.running_var,
                         bn.arguments(fused));
    });
    return Tensor();
  });
  return y;
}

}  // namespace

Tensor conv_bn(const Conv2d& conv, const BatchNorm2d& bn, const Tensor& x, const BatchNorm2d::Fused& fused) {
  if (!bn.uses_batch_statistics()) {
    const auto inputs = {x, conv.weight, conv.bias, bn.weight, bn.bias, fused.residual};
    const bool recorded = std::any_of(inputs.begin(), inputs.end(), wants_gradient);
    const bool watched = conv.watches_tensors() || bn.watches_tensors();
    return recorded || watched ? bn(conv(x), fused) : in_one_kernel(conv, bn, x, fused);
  }
  Conv2dStatistics made;
  uint32_t version = 0;
  const Tensor y = conv.with_hooks(x, [&] {
    made = conv2d_statistics(x, conv.weight, conv.bias, conv.options);
    version = made.y.storage()->version();
    return made.y;
  });
  return bn.with_hooks(y, [&] {
    // A hook may have replaced or changed y; then the norm computes the statistics itself.
    const bool unchanged = y.is_same(made.y) && y.storage()->version() == version;
    return bn.forward(y, {fused.relu, fused.residual, unchanged ? made.statistics : Tensor()});
  });
}

}  // namespace weft::nn
