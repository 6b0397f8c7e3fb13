// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/libtorch/training.h"

#include <ATen/autocast_mode.h>

#include "benchmarks/peers/libtorch/autocast.h"

namespace peer {

NetworkSize resnet18_size(const Target& target, bool bf16, Layout layout) {
  return {false, true, target.size(64, 2), target.size(32, 8), 10, bf16, layout};
}

NetworkSize resnet50_size(const Target& target, bool bf16, Layout layout) {
  return {true, false, target.size(8, 2), target.size(224, 32), target.size(1000, 10), bf16, layout};
}

Network::Network(const NetworkSize& size)
    : model(size.bottleneck, size.cifar_stem, size.classes),
      x(in_layout(torch::randn({size.batch, 3, size.edge, size.edge}), size.layout)),
      labels(torch::arange(size.batch) % size.classes) {
  for (Tensor& parameter : model->parameters())
    if (parameter.dim() == 4) parameter.set_data(in_layout(parameter.data(), size.layout));
}

Training::Training(const NetworkSize& size)
    : bf16_(size.bf16),
      network_(size),
      sgd_(network_.model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)) {}

void Training::step() {
  Tensor loss;
  {
    const Autocast low(bf16_);
    loss = torch::cross_entropy_loss(network_.model(network_.x), network_.labels);
  }
  sgd_.zero_grad();
  loss.backward();
  sgd_.step();
}

}  // namespace peer
