// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct LionOptions {
  double lr = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool maximize = false;
};

/// w -= lr (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g (Chen et al. 2023). Every
/// weight moves by lr: rates are 3 to 10 times below Adam's, decays as much above. Errors: a beta outside [0, 1).
class Lion : public Optimizer {
 public:
  Lion(const std::vector<NamedTensor>& parameters, const LionOptions& options);
  Lion(const std::vector<ParameterGroup>& groups, const LionOptions& options);

 private:
  void update(const Range& range) override;
  LionOptions options_;
};

}  // namespace weft::optim
