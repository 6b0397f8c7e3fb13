// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "nn/module.h"

namespace weft::nn {

/// In training each element is 0 with probability p, else x / (1 - p) (Srivastava et al. 2014); in evaluation y = x.
struct Dropout : Module {
  double p;
  explicit Dropout(double probability = 0.5) : p(probability) {
    WEFT_CHECK(p >= 0 && p < 1, "Dropout: expected a probability in [0, 1), got ", p);
  }
  Tensor forward(const Tensor& x) const override { return dropout(x, p, is_training()); }
};

/// Stochastic depth (Huang et al. 2016): in training a whole entry of the batch, x[n], is 0 with probability p, else
/// x[n] / (1 - p); in evaluation y = x. For the branch beside a shortcut.
struct DropPath : Module {
  double p;
  explicit DropPath(double probability = 0) : p(probability) {
    WEFT_CHECK(p >= 0 && p < 1, "DropPath: expected a probability in [0, 1), got ", p);
  }
  Tensor forward(const Tensor& x) const override {
    if (p == 0 || !is_training()) return x;
    Shape sizes = x.sizes();
    for (int d = 1; d < sizes.rank(); ++d) sizes[d] = 1;
    return mul(x, dropout(Tensor::ones(sizes, x.dtype(), x.device()), p));
  }
};

}  // namespace weft::nn
