// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"

namespace weft::nn {

/// Modules in sequence, named 0, 1, 2, … A Conv2d and the BatchNorm2d right after run as conv_bn().
///   auto net = nn::sequential(std::make_shared<nn::Linear>(784, 64), std::make_shared<nn::ReLU>(), …);
struct Sequential : Module {
  std::vector<std::shared_ptr<Module>> children;

  Sequential() = default;
  explicit Sequential(std::vector<std::shared_ptr<Module>> modules);
  /// Errors: null, or a Sequential that contains this one.
  void add(std::shared_ptr<Module> child);
  Tensor forward(const Tensor& x) const override;
  void fields(Visitor& v) override;
};

/// A Sequential of these modules.
template <class... Modules>
std::shared_ptr<Sequential> sequential(std::shared_ptr<Modules>... modules) {
  static_assert((std::is_base_of_v<Module, Modules> && ...),
                "sequential() takes modules: std::make_shared<M>(…) of M : nn::Module with `Tensor forward(const "
                "Tensor& x) const override`");
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Module>>{std::move(modules)...});
}

/// [N, …] to [N, the rest]. Images [N, H, W, C] and volumes [N, D, H, W, C] are flattened in the order C, H, W. So the
/// next Linear takes PyTorch's weights unchanged; after a pool to 1x1 nothing moves. [N, T, C] keeps its order,
/// tokens first: after a Conv1d PyTorch's is C, T.
struct Flatten : Module {
  Tensor forward(const Tensor& x) const override {
    if (x.dim() < 4 || x.numel() == x.size(0) * x.size(-1)) return x.flatten(1);
    return to_file_order(x).flatten(1);
  }
};

/// y = x.
struct Identity : Module {
  Tensor forward(const Tensor& x) const override { return x; }
};

}  // namespace weft::nn
