// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/batch_norm.h"
#include "nn/conv2d.h"

namespace weft::nn {

/// relu?(bn(conv(x)) + residual?) with fewer passes over memory:
///   Tensor y = conv_bn(conv1, bn1, x, {.relu = true, .residual = shortcut});
/// In training the convolution's kernel computes the statistics that the norm needs; in evaluation without gradients
/// both are one kernel. Hooks of both modules run and change no kernel, but for those of Watch::tensors in such an
/// evaluation: it runs as two kernels, so that they see conv(x).
Tensor conv_bn(const Conv2d& conv, const BatchNorm2d& bn, const Tensor& x, const BatchNorm2d::Fused& fused = {});

}  // namespace weft::nn
