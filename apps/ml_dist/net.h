// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"

namespace weft::ml_dist {

/// The network of PyTorch's MNIST example: two 3x3 convolutions, a pool, two linear layers, dropout; 1,199,882
/// parameters under that example's names. x [N, 28, 28, 1] to log probabilities [N, 10].
struct Net : nn::Module {
  nn::Conv2d conv1{1, 32, {3, 3}}, conv2{32, 64, {3, 3}};
  nn::Dropout dropout1{0.25}, dropout2{0.5};
  nn::Flatten flatten;
  nn::Linear fc1{9216, 128}, fc2{128, 10};

  Tensor forward(const Tensor& x) const override;
  void fields(nn::Visitor& v) override;
};

}  // namespace weft::ml_dist
