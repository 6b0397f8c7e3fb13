// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/batch_norm.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/sequential.h"

namespace weft::nn {

/// How the image enters: `imagenet` 7x7 stride 2 and a 3x3 max-pool stride 2; `cifar` 3x3 stride 1 and no pool, for
/// images of about 32x32.
enum class Stem { imagenet, cifar };

struct ResNetOptions {
  int64_t classes = 1000;
  Stem stem = Stem::imagenet;
  bool zero_init_residual = false;  ///< the last norm of each block starts at 0 (Goyal et al. 2017, section 5.1)
  int64_t channels = 3;             ///< channels of the images
};

/// Two 3x3 convolutions beside a shortcut (He et al. 2016, figure 5 left).
struct BasicBlock : Module {
  static constexpr int64_t kExpansion = 1;
  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  std::shared_ptr<Sequential> downsample;

  BasicBlock(int64_t in, int64_t planes, int64_t stride);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
  BatchNorm2d& last_norm() { return bn2; }
};

/// 1x1, 3x3 (with the stride: "v1.5"), 1x1 with four times the channels (He et al. 2016, figure 5 right).
struct Bottleneck : Module {
  static constexpr int64_t kExpansion = 4;
  Conv2d conv1;
  BatchNorm2d bn1;
  Conv2d conv2;
  BatchNorm2d bn2;
  Conv2d conv3;
  BatchNorm2d bn3;
  std::shared_ptr<Sequential> downsample;

  Bottleneck(int64_t in, int64_t planes, int64_t stride);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
  BatchNorm2d& last_norm() { return bn3; }
};

/// The residual networks of He et al., "Deep residual learning for image recognition", CVPR 2016, under the parameter
/// names of torchvision. x [N, H, W, channels] to logits [N, classes].
struct ResNet : Module {
  Stem stem;
  Conv2d conv1;
  BatchNorm2d bn1;
  Sequential layer1, layer2, layer3, layer4;
  Linear fc;

  /// `blocks`: how many in layer1 … layer4; `bottleneck`: of which kind.
  ResNet(const std::array<int64_t, 4>& blocks, bool bottleneck, ResNetOptions options);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// The networks of He et al. 2016, table 1; bottlenecks from 50 layers on.
std::shared_ptr<ResNet> resnet18(ResNetOptions options = {});
std::shared_ptr<ResNet> resnet34(ResNetOptions options = {});
std::shared_ptr<ResNet> resnet50(ResNetOptions options = {});
std::shared_ptr<ResNet> resnet101(ResNetOptions options = {});
std::shared_ptr<ResNet> resnet152(ResNetOptions options = {});

}  // namespace weft::nn
