// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct AdadeltaOptions {
  double lr = 1.0, rho = 0.9, eps = 1e-6, weight_decay = 0;
  bool maximize = false;
};

/// s = rho s + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(s + eps) g; u = rho u + (1 - rho) d^2; w -= lr d (Zeiler 2012).
/// Errors: rho outside [0, 1], eps below 0.
class Adadelta : public Optimizer {
 public:
  Adadelta(const std::vector<NamedTensor>& parameters, const AdadeltaOptions& options);
  Adadelta(const std::vector<ParameterGroup>& groups, const AdadeltaOptions& options);

 private:
  void update(const Range& range) override;
  AdadeltaOptions options_;
};

}  // namespace weft::optim
