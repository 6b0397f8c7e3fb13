// SPDX-License-Identifier: Apache-2.0
#include <torch/csrc/autograd/grad_mode.h>

#include "benchmarks/peers/libtorch/training.h"

// Additions of 16 elements and chains of them; cases with a process of their own.

namespace peer {
namespace {

constexpr int kBlock = 1000;  // additions per step

struct Chain {
  Tensor x = torch::randn({16}), b = torch::randn({16}), dy = torch::ones({16}), y;
  Chain() { x.requires_grad_(); }
  void forward() {
    y = x;
    for (int i = 0; i < kBlock; ++i) y = torch::add(y, b);
  }
};

Work add_16(bool gradients) {
  const Tensor a = torch::randn({16}), b = torch::randn({16});
  a.requires_grad_(gradients);
  return {[=] {
            const torch::AutoGradMode recording(gradients);
            for (int i = 0; i < kBlock; ++i) torch::add(a, b);
          },
          kBlock};
}

}  // namespace

void add_tiny_op_cases(Cases& cases, const Target&) {
  cases.push_back({"add_16", "ns", [] { return add_16(false); }});
  cases.push_back({"add_16_autograd", "ns", [] { return add_16(true); }});
  cases.push_back({"chain_forward", "ns", [] {
                     const auto chain = std::make_shared<Chain>();
                     return Work{[=] { chain->forward(); }, kBlock, [=] { chain->y = Tensor(); }};
                   }});
  cases.push_back({"chain_backward", "ns", [] {
                     const auto chain = std::make_shared<Chain>();
                     const auto before = [=] {
                       chain->x.mutable_grad() = Tensor();
                       chain->forward();
                     };
                     return Work{[=] { chain->y.backward(chain->dy); }, kBlock, before};
                   }});
}

void add_process_cases(Cases& cases, const Target& target) {
  cases.push_back({.name = "startup", .unit = "ms", .process = [] { torch::zeros({16}); }});
  for (const bool large : {false, true})
    for (const Layout layout : kLayouts) {
      const NetworkSize size = large ? resnet50_size(target, false, layout) : resnet18_size(target, false, layout);
      const std::string name = large ? "resnet50_train_memory" : "resnet18_train_memory";
      cases.push_back({.name = in_layout(name, layout), .unit = "MiB", .process = [=] {
                         Training training(size);
                         for (int i = 0; i < 3; ++i) training.step();
                       }});
    }
}

}  // namespace peer
