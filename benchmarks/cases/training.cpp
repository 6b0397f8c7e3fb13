// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/cases/training.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/layers/losses.h"
#include "core/ops/random.h"

namespace weft::benchmarks {

NetworkSize resnet18_size(const Target& target, int64_t batch, DType precision) {
  return {.stem = nn::Stem::cifar,
          .batch = target.size(batch, 2),
          .edge = target.size(32, 8),
          .classes = 10,
          .precision = precision,
          .tiny = target.tiny};
}

NetworkSize resnet18_imagenet_size(const Target& target, int64_t batch, DType precision) {
  return {.batch = target.size(batch, 2),
          .edge = target.size(224, 32),
          .classes = target.size(1000, 10),
          .precision = precision,
          .tiny = target.tiny};
}

NetworkSize resnet50_size(const Target& target, int64_t batch, DType precision) {
  NetworkSize size = resnet18_imagenet_size(target, batch, precision);
  size.bottleneck = true;
  return size;
}

Network::Network(const NetworkSize& size, Device device) : precision(size.precision) {
  const nn::ResNetOptions options{.classes = size.classes, .stem = size.stem};
  if (size.tiny)
    model = std::make_shared<nn::ResNet>(std::array<int64_t, 4>{1, 1, 1, 1}, size.bottleneck, options);
  else
    model = size.bottleneck ? nn::resnet50(options) : nn::resnet18(options);
  model->to(device);
  x = normal({size.batch, size.edge, size.edge, 3}, 0, 1, DType::f32, device);
  std::vector<int64_t> classes(static_cast<size_t>(size.batch));
  for (size_t n = 0; n < classes.size(); ++n) classes[n] = static_cast<int64_t>(n) % size.classes;
  labels = Tensor::from(classes, device);
}

Training::Training(const NetworkSize& size, Device device)
    : network_(size, device), sgd_(network_.model->parameters(), {.lr = 0.01, .momentum = 0.9}) {
  if (size.precision != DType::f32) sgd_.flat()->keep_compute_copy(size.precision);
}

void Training::step() {
  Tensor loss;
  {
    const Autocast low(network_.precision);
    loss = cross_entropy((*network_.model)(network_.x), network_.labels);
  }
  sgd_.zero_grad();
  loss.backward();
  sgd_.step();
}

Work train(const NetworkSize& size, const Target& target) {
  const auto training = std::make_shared<Training>(size, target.device);
  return work_on(
      target, [training] { training->step(); }, static_cast<double>(size.batch));
}

Work infer(const NetworkSize& size, const Target& target) {
  const auto network = std::make_shared<Network>(size, target.device);
  network->model->eval();
  return work_on(
      target,
      [network] {
        const NoGrad no_grad;
        const Autocast low(network->precision);
        (*network->model)(network->x);
      },
      static_cast<double>(size.batch));
}

}  // namespace weft::benchmarks
