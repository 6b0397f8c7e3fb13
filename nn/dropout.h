// SPDX-License-Identifier: Apache-2.0
#pragma once
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

}  // namespace weft::nn
