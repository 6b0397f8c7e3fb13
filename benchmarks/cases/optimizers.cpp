// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"
#include "benchmarks/cases/cases.h"
#include "core/ops/random.h"

// One step of an optimizer on 25 million parameters in 160 tensors, divided as in ResNet-50: 54 matrices of 680x680 and
// 106 vectors of 512. All gradients are there.

namespace weft::benchmarks {

namespace {

std::vector<NamedTensor> parameters(const Target& target) {
  std::vector<NamedTensor> all;
  const auto add = [&](const Shape& sizes) {
    const Tensor weight = normal(sizes, 0, 1, DType::f32, target.device);
    weight.requires_grad_();
    weight.set_grad(normal(sizes, 0, 1, DType::f32, target.device));
    all.push_back({str("p", all.size()), weight});
  };
  const int64_t edge = target.size(680, 4);
  for (int64_t i = 0; i < 54; ++i) add({edge, edge});
  for (int64_t i = 0; i < 106; ++i) add({target.size(512, 8)});
  return all;
}

template <class Optimizer>
Work step_of(const Target& target, const auto& options) {
  const auto optimizer = std::make_shared<Optimizer>(parameters(target), options);
  return work_on(target, [optimizer] { optimizer->step(); });
}

}  // namespace

void add_optimizer_cases(Cases& cases, const Target& target) {
  using namespace optim;
  cases.push_back({"sgd_step", "ms", [=] {
                     return step_of<SGD>(target, SgdOptions{.lr = 1e-4, .momentum = 0.9, .weight_decay = 1e-4});
                   }});
  cases.push_back({"adam_step", "ms", [=] { return step_of<Adam>(target, AdamOptions{.lr = 1e-4}); }});
  cases.push_back({"adamw_step", "ms", [=] { return step_of<AdamW>(target, AdamWOptions{.lr = 1e-4}); }});
}

}  // namespace weft::benchmarks
