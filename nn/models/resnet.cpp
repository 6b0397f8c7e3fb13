// SPDX-License-Identifier: Apache-2.0
#include "nn/models/resnet.h"

#include <algorithm>

#include "core/autograd.h"
#include "core/ops/layers/pool2d.h"
#include "nn/batch_norm.h"

namespace weft::nn {
namespace {

constexpr Conv2dWeights kResnetWeights{.bias = false, .init = Init::kaiming_normal_fan_out};

Conv2dOptions padded(int64_t padding, int64_t stride = 1) {
  return {.stride = {stride, stride}, .padding = {padding, padding}};
}

/// The projection of the shortcut where sizes change ("option B"); none elsewhere.
std::shared_ptr<Sequential> projection(int64_t in, int64_t out, int64_t stride) {
  if (in == out && stride == 1) return nullptr;
  return sequential(std::make_shared<Conv2d>(in, out, Size2d{1, 1}, padded(0, stride), kResnetWeights),
                    std::make_shared<BatchNorm2d>(out));
}

template <class Block>
void add_blocks(Sequential& layer, int64_t& channels, int64_t planes, int64_t count, int64_t stride, bool zero_init) {
  for (int64_t i = 0; i < count; ++i) {
    const auto block = std::make_shared<Block>(channels, planes, i == 0 ? stride : 1);
    const NoGrad no_grad;
    if (zero_init) block->last_norm().weight.zero_();
    layer.add(block);
    channels = planes * Block::kExpansion;
  }
}

}  // namespace

BasicBlock::BasicBlock(int64_t in, int64_t planes, int64_t stride)
    : conv1(in, planes, {3, 3}, padded(1, stride), kResnetWeights),
      bn1(planes),
      conv2(planes, planes, {3, 3}, padded(1), kResnetWeights),
      bn2(planes),
      downsample(projection(in, planes, stride)) {}

Tensor BasicBlock::forward(const Tensor& x) const {
  const Tensor y = conv_bn(conv1, bn1, x, {.relu = true});
  // Not before conv1: so its gradient for x, which has a stride, comes first, and conv1's adds to it, which is cheap.
  const Tensor shortcut = downsample ? (*downsample)(x) : x;
  return conv_bn(conv2, bn2, y, {.relu = true, .residual = shortcut});
}

void BasicBlock::fields(Visitor& v) {
  v("conv1", conv1);
  v("bn1", bn1);
  v("conv2", conv2);
  v("bn2", bn2);
  v("downsample", downsample);
}

Bottleneck::Bottleneck(int64_t in, int64_t planes, int64_t stride)
    : conv1(in, planes, {1, 1}, padded(0), kResnetWeights),
      bn1(planes),
      conv2(planes, planes, {3, 3}, padded(1, stride), kResnetWeights),
      bn2(planes),
      conv3(planes, planes * kExpansion, {1, 1}, padded(0), kResnetWeights),
      bn3(planes * kExpansion),
      downsample(projection(in, planes * kExpansion, stride)) {}

Tensor Bottleneck::forward(const Tensor& x) const {
  Tensor y = conv_bn(conv1, bn1, x, {.relu = true});
  y = conv_bn(conv2, bn2, y, {.relu = true});
  const Tensor shortcut = downsample ? (*downsample)(x) : x;  // see BasicBlock
  return conv_bn(conv3, bn3, y, {.relu = true, .residual = shortcut});
}

void Bottleneck::fields(Visitor& v) {
  v("conv1", conv1);
  v("bn1", bn1);
  v("conv2", conv2);
  v("bn2", bn2);
  v("conv3", conv3);
  v("bn3", bn3);
  v("downsample", downsample);
}

ResNet::ResNet(const std::array<int64_t, 4>& blocks, bool bottleneck, ResNetOptions options)
    : stem(options.stem),
      conv1(options.channels, 64, options.stem == Stem::imagenet ? Size2d{7, 7} : Size2d{3, 3},
            options.stem == Stem::imagenet ? padded(3, 2) : padded(1), kResnetWeights),
      bn1(64),
      fc(bottleneck ? 512 * Bottleneck::kExpansion : 512 * BasicBlock::kExpansion, options.classes) {
  WEFT_CHECK(std::ranges::all_of(blocks, [](int64_t count) { return count >= 1; }),
             "ResNet: expected at least one block in each of four stages, got ", Shape(std::span(blocks)));
  int64_t channels = 64;
  int64_t planes = 64;
  for (size_t i = 0; i < blocks.size(); ++i, planes *= 2) {
    Sequential& layer = *std::array{&layer1, &layer2, &layer3, &layer4}[i];
    const int64_t stride = i == 0 ? 1 : 2;
    if (bottleneck)
      add_blocks<Bottleneck>(layer, channels, planes, blocks[i], stride, options.zero_init_residual);
    else
      add_blocks<BasicBlock>(layer, channels, planes, blocks[i], stride, options.zero_init_residual);
  }
}

Tensor ResNet::forward(const Tensor& x) const {
  Tensor y = conv_bn(conv1, bn1, x, {.relu = true});
  if (stem == Stem::imagenet) y = max_pool2d(y, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  y = layer4(layer3(layer2(layer1(y))));
  return fc(adaptive_avg_pool2d(y, {1, 1}).flatten(1));
}

void ResNet::fields(Visitor& v) {
  v("conv1", conv1);
  v("bn1", bn1);
  v("layer1", layer1);
  v("layer2", layer2);
  v("layer3", layer3);
  v("layer4", layer4);
  v("fc", fc);
}

std::shared_ptr<ResNet> resnet18(ResNetOptions options) {
  return std::make_shared<ResNet>(std::array<int64_t, 4>{2, 2, 2, 2}, false, options);
}
std::shared_ptr<ResNet> resnet34(ResNetOptions options) {
  return std::make_shared<ResNet>(std::array<int64_t, 4>{3, 4, 6, 3}, false, options);
}
std::shared_ptr<ResNet> resnet50(ResNetOptions options) {
  return std::make_shared<ResNet>(std::array<int64_t, 4>{3, 4, 6, 3}, true, options);
}
std::shared_ptr<ResNet> resnet101(ResNetOptions options) {
  return std::make_shared<ResNet>(std::array<int64_t, 4>{3, 4, 23, 3}, true, options);
}
std::shared_ptr<ResNet> resnet152(ResNetOptions options) {
  return std::make_shared<ResNet>(std::array<int64_t, 4>{3, 8, 36, 3}, true, options);
}

}  // namespace weft::nn
