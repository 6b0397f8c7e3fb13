// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/training.h"

#include "core/ops/layers/losses.h"

namespace weft::golden {

Batch batch(const Task& task, int64_t step) {
  const Shape sizes{task.count, task.size, task.size, 3};
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < task.count; ++i) labels.push_back((i + step) % task.classes);
  const auto seed = static_cast<uint32_t>(task.seeds.at(static_cast<size_t>(step)));
  const Tensor like = task.model->parameters().front().tensor;
  const Tensor images = Tensor::from(hashed_values(seed, sizes.numel()), sizes).to(like.dtype());
  return {images.to(like.device()), Tensor::from(labels, like.device())};
}

std::unique_ptr<optim::Optimizer> make_optimizer(const std::string& name, const std::vector<NamedTensor>& parameters) {
  using namespace optim;
  const auto sgd = [&](SgdOptions options) { return std::make_unique<SGD>(parameters, options); };
  if (name == "sgd") return sgd({.lr = 0.05});
  if (name == "sgd_momentum") return sgd({.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4});
  if (name == "sgd_dampening") return sgd({.lr = 0.05, .momentum = 0.8, .dampening = 0.3, .maximize = true});
  if (name == "sgd_nesterov") return sgd({.lr = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  if (name == "sgd_slow") return sgd({.lr = 1e-3, .momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});
  if (name == "adam")
    return std::make_unique<Adam>(
        parameters, AdamOptions{.lr = 2e-3, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 1e-2});
  if (name == "adamw") return std::make_unique<AdamW>(parameters, AdamWOptions{.lr = 1e-3, .weight_decay = 0.05});
  if (name == "adamw_slow") return std::make_unique<AdamW>(parameters, AdamWOptions{.lr = 1e-4, .weight_decay = 0.05});
  if (name == "adadelta")
    return std::make_unique<Adadelta>(parameters, AdadeltaOptions{.lr = 0.7, .rho = 0.85, .weight_decay = 1e-3});
  fail("no optimizer '", name, "'");
}

std::vector<double> train(const Task& task, optim::Optimizer& optimizer) {
  std::vector<double> losses;
  for (int64_t step = 0; step < 3; ++step) {
    const auto [images, labels] = batch(task, step);
    optimizer.zero_grad();
    const Tensor loss = cross_entropy((*task.model)(images), labels);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item());
  }
  return losses;
}

}  // namespace weft::golden
