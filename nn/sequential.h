// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"

namespace weft::nn {

/// Modules one after the other, named 0, 1, 2, … A Conv2d and a BatchNorm2d right after it run as conv_bn().
///   auto net = nn::sequential(std::make_shared<nn::Linear>(784, 64), std::make_shared<nn::ReLU>(), …);
struct Sequential : Module {
  std::vector<std::shared_ptr<Module>> children;

  Sequential() = default;
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  void add(std::shared_ptr<Module> child);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

template <class... Modules>
std::shared_ptr<Sequential> sequential(std::shared_ptr<Modules>... modules) {
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Module>>{std::move(modules)...});
}

}  // namespace weft::nn
