// SPDX-License-Identifier: Apache-2.0
#include "nn/models/cifar_resnet.h"

#include "core/ops/concat.h"
#include "core/ops/layers/pool2d.h"
#include "nn/batch_norm.h"

namespace weft::nn {
namespace {

constexpr Conv2dWeights kCifarWeights{.bias = false, .init = Init::kaiming_normal};

Conv2dOptions around(int64_t stride) { return {.stride = {stride, stride}, .padding = {1, 1}}; }

void add_blocks(Sequential& layer, int64_t in, int64_t planes, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i)
    layer.add(std::make_shared<CifarBlock>(i == 0 ? in : planes, planes, i == 0 ? stride : 1));
}

}  // namespace

CifarBlock::CifarBlock(int64_t in, int64_t planes, int64_t block_stride)
    : stride(block_stride),
      zeros((planes - in) / 2),
      conv1(in, planes, {3, 3}, around(stride), kCifarWeights),
      bn1(planes),
      conv2(planes, planes, {3, 3}, around(1), kCifarWeights),
      bn2(planes) {}

Tensor CifarBlock::forward(const Tensor& x) const {
  Tensor shortcut = x;
  if (stride != 1)
    shortcut =
        x.slice(1, 0, (x.size(1) + stride - 1) / stride, stride).slice(2, 0, (x.size(2) + stride - 1) / stride, stride);
  if (zeros != 0) shortcut = pad(shortcut, 3, zeros, zeros);
  const Tensor y = conv_bn(conv1, bn1, x, {.relu = true});
  return conv_bn(conv2, bn2, y, {.relu = true, .residual = shortcut});
}

void CifarBlock::fields(Visitor& v) {
  v("conv1", conv1);
  v("bn1", bn1);
  v("conv2", conv2);
  v("bn2", bn2);
}

CifarResNet::CifarResNet(int64_t n, CifarResNetOptions options)
    : conv1(options.channels, 16, {3, 3}, around(1), kCifarWeights),
      bn1(16),
      linear(64, options.classes, {.init = Init::kaiming_normal}) {
  add_blocks(layer1, 16, 16, n, 1);
  add_blocks(layer2, 16, 32, n, 2);
  add_blocks(layer3, 32, 64, n, 2);
}

Tensor CifarResNet::forward(const Tensor& x) const {
  Tensor y = conv_bn(conv1, bn1, x, {.relu = true});
  y = layer3(layer2(layer1(y)));
  return linear(adaptive_avg_pool2d(y, {1, 1}).flatten(1));
}

void CifarResNet::fields(Visitor& v) {
  v("conv1", conv1);
  v("bn1", bn1);
  v("layer1", layer1);
  v("layer2", layer2);
  v("layer3", layer3);
  v("linear", linear);
}

std::shared_ptr<CifarResNet> resnet8(CifarResNetOptions options) { return std::make_shared<CifarResNet>(1, options); }
std::shared_ptr<CifarResNet> resnet20(CifarResNetOptions options) { return std::make_shared<CifarResNet>(3, options); }
std::shared_ptr<CifarResNet> resnet32(CifarResNetOptions options) { return std::make_shared<CifarResNet>(5, options); }
std::shared_ptr<CifarResNet> resnet44(CifarResNetOptions options) { return std::make_shared<CifarResNet>(7, options); }
std::shared_ptr<CifarResNet> resnet56(CifarResNetOptions options) { return std::make_shared<CifarResNet>(9, options); }
std::shared_ptr<CifarResNet> resnet110(CifarResNetOptions options) {
  return std::make_shared<CifarResNet>(18, options);
}

}  // namespace weft::nn
