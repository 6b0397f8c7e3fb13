// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "benchmarks/peers/libtorch/cases.h"

namespace peer {

/// ResNet-18 and ResNet-50 (He et al. 2016) as torch::nn modules; ReLU and the addition of the shortcut work in place.
struct ResNetImpl : torch::nn::Module {
  bool cifar_stem;
  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d bn1;
  torch::nn::Sequential blocks;
  torch::nn::Linear fc;

  ResNetImpl(bool bottleneck, bool cifar_stem, int64_t classes);
  Tensor forward(const Tensor& x);
};
TORCH_MODULE(ResNet);

}  // namespace peer
