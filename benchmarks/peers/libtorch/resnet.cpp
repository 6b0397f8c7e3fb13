// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/libtorch/resnet.h"

namespace peer {
namespace {

torch::nn::Conv2d convolution(int64_t in, int64_t out, int64_t edge, int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, edge).stride(stride).padding(edge / 2).bias(false));
}

/// Convolutions with norms, each but the last with a ReLU, beside a shortcut.
struct BlockImpl : torch::nn::Module {
  std::vector<torch::nn::Conv2d> convolutions;
  std::vector<torch::nn::BatchNorm2d> norms;
  torch::nn::Sequential shortcut;

  BlockImpl(int64_t in, int64_t planes, int64_t stride, bool bottleneck) {
    const int64_t out = bottleneck ? 4 * planes : planes;
    if (bottleneck) {
      add(in, planes, 1, 1);
      add(planes, planes, 3, stride);
      add(planes, out, 1, 1);
    } else {
      add(in, planes, 3, stride);
      add(planes, out, 3, 1);
    }
    if (in != out || stride != 1) {
      shortcut = torch::nn::Sequential(convolution(in, out, 1, stride), torch::nn::BatchNorm2d(out));
      register_module("downsample", shortcut);
    }
  }

  void add(int64_t in, int64_t out, int64_t edge, int64_t stride) {
    const std::string number = std::to_string(convolutions.size() + 1);
    convolutions.push_back(register_module("conv" + number, convolution(in, out, edge, stride)));
    norms.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
  }

  Tensor forward(const Tensor& x) {
    Tensor y = x;
    for (size_t i = 0; i < convolutions.size(); ++i) {
      y = norms[i](convolutions[i](y));
      if (i + 1 < convolutions.size()) y = y.relu_();
    }
    y += shortcut->is_empty() ? x : shortcut->forward(x);
    return y.relu_();
  }
};
TORCH_MODULE(Block);

}  // namespace

ResNetImpl::ResNetImpl(bool bottleneck, bool cifar, int64_t classes)
    : cifar_stem(cifar),
      conv1(cifar ? convolution(3, 64, 3, 1) : convolution(3, 64, 7, 2)),
      bn1(64),
      fc(bottleneck ? 2048 : 512, classes) {
  const std::vector<int64_t> counts = bottleneck ? std::vector<int64_t>{3, 4, 6, 3} : std::vector<int64_t>{2, 2, 2, 2};
  int64_t channels = 64, planes = 64;
  for (size_t layer = 0; layer < counts.size(); ++layer, planes *= 2)
    for (int64_t i = 0; i < counts[layer]; ++i) {
      blocks->push_back(Block(channels, planes, layer > 0 && i == 0 ? 2 : 1, bottleneck));
      channels = bottleneck ? 4 * planes : planes;
    }
  register_module("conv1", conv1);
  register_module("bn1", bn1);
  register_module("blocks", blocks);
  register_module("fc", fc);
}

Tensor ResNetImpl::forward(const Tensor& x) {
  Tensor y = bn1(conv1(x)).relu_();
  if (!cifar_stem) y = torch::max_pool2d(y, 3, 2, 1);
  y = blocks->forward(y);
  return fc(torch::adaptive_avg_pool2d(y, {1, 1}).flatten(1));
}

}  // namespace peer
