// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/sequential.h"

namespace weft::nn {

struct CifarResNetOptions {
  int64_t classes = 10;
  int64_t channels = 3;  ///< channels of the images
};

/// Two 3x3 convolutions beside a shortcut without parameters ("option A"): where sizes change it takes every second row
/// and column and sets zero channels around, half of the new ones on either side.
struct CifarBlock : Module {
  int64_t stride, zeros;  ///< zero channels on either side
  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;

  CifarBlock(int64_t in, int64_t planes, int64_t stride);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// The networks for CIFAR of He et al. 2016, section 4.2: three stages of n blocks with 16, 32 and 64 channels, 6n + 2
/// layers. x [N, H, W, channels] to logits [N, classes].
struct CifarResNet : Module {
  Conv2d conv1;
  BatchNorm2d bn1;
  Sequential layer1, layer2, layer3;
  Linear linear;

  explicit CifarResNet(int64_t n, CifarResNetOptions options = {});
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

std::shared_ptr<CifarResNet> resnet8(CifarResNetOptions options = {});  ///< n = 1, for tests and demonstrations
/// n = 3, 5, 7, 9 and 18.
std::shared_ptr<CifarResNet> resnet20(CifarResNetOptions options = {});
std::shared_ptr<CifarResNet> resnet32(CifarResNetOptions options = {});
std::shared_ptr<CifarResNet> resnet44(CifarResNetOptions options = {});
std::shared_ptr<CifarResNet> resnet56(CifarResNetOptions options = {});
std::shared_ptr<CifarResNet> resnet110(CifarResNetOptions options = {});

}  // namespace weft::nn
