// SPDX-License-Identifier: Apache-2.0
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "benchmarks/peers/libtorch/cases.h"

namespace peer {
namespace {

std::vector<Tensor> parameters(const Target& target) {
  std::vector<Tensor> all;
  const auto add = [&](torch::IntArrayRef sizes) {
    Tensor weight = torch::randn(sizes);
    weight.requires_grad_();
    weight.mutable_grad() = torch::randn(sizes);
    all.push_back(weight);
  };
  const int64_t edge = target.size(680, 4);
  for (int i = 0; i < 54; ++i) add({edge, edge});
  for (int i = 0; i < 106; ++i) add({target.size(512, 8)});
  return all;
}

template <class Optimizer>
Work step_of(const Target& target, const auto& options) {
  const auto optimizer = std::make_shared<Optimizer>(parameters(target), options);
  return {[optimizer] { optimizer->step(); }};
}

}  // namespace

void add_optimizer_cases(Cases& cases, const Target& target) {
  using namespace torch::optim;
  cases.push_back(
      {"sgd_step", "ms", [=] { return step_of<SGD>(target, SGDOptions(1e-4).momentum(0.9).weight_decay(1e-4)); }});
  cases.push_back({"adam_step", "ms", [=] { return step_of<Adam>(target, AdamOptions(1e-4)); }});
  cases.push_back({"adamw_step", "ms", [=] { return step_of<AdamW>(target, AdamWOptions(1e-4)); }});
}

}  // namespace peer
