// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"

namespace weft::nn {

/// [N, …] to [N, the rest]. Images [N, H, W, C] are flattened in the order C, H, W, so that the Linear after them
/// takes PyTorch's weights as they are; after a pool to 1x1 nothing moves.
struct Flatten : Module {
  Tensor forward(const Tensor& x) const override {
    if (x.dim() != 4 || x.size(1) * x.size(2) == 1) return x.flatten(1);
    return x.permute({0, 3, 1, 2}).flatten(1);
  }
};

/// y = x.
struct Identity : Module {
  Tensor forward(const Tensor& x) const override { return x; }
};

}  // namespace weft::nn
