// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false;
  bool maximize = false;
};

/// s = alpha s + (1 - alpha) g^2; v = momentum v + g / (sqrt(s) + eps); w -= lr v (Hinton 2012, in PyTorch's form).
/// Centered: the root of s - a^2, a the moving average of g (Graves 2013). Errors: alpha outside [0, 1], eps or
/// momentum below 0.
class RMSprop : public Optimizer {
 public:
  RMSprop(const std::vector<NamedTensor>& parameters, const RMSpropOptions& options);
  RMSprop(const std::vector<ParameterGroup>& groups, const RMSpropOptions& options);

 private:
  void update(const Range& range) override;
  RMSpropOptions options_;
};

}  // namespace weft::optim
