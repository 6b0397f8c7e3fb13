// SPDX-License-Identifier: Apache-2.0
#include "nn/conv_bn.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/conv2d.h"

namespace weft::nn {
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
