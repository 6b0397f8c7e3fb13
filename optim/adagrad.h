// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};

/// s += g^2; w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps) (Duchi et al. 2011); s begins with
/// initial_accumulator_value. Errors: a number below 0.
class Adagrad : public Optimizer {
 public:
  Adagrad(const std::vector<NamedTensor>& parameters, const AdagradOptions& options);
  Adagrad(const std::vector<ParameterGroup>& groups, const AdagradOptions& options);

 private:
  void update(const Range& range) override;
  AdagradOptions options_;
};

}  // namespace weft::optim
