// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/by_parameter.h"

namespace weft::optim {

struct LarsOptions {
  double lr = 1, momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  double trust = 0.001, eps = 1e-8;
  bool always_adapt = false;  ///< parameters without weight decay too
  bool maximize = false;
};

/// SGD with momentum for large batches: each parameter's gradient is scaled by trust |w| / (|g| + weight_decay |w| +
/// eps), so that its step is a share of its weights (You et al. 2017). Errors: a momentum, trust or eps below 0.
class LARS : public ByParameter {
 public:
  LARS(const std::vector<NamedTensor>& parameters, const LarsOptions& options);
  LARS(const std::vector<ParameterGroup>& groups, const LarsOptions& options);

 private:
  void update_all() override;
  LarsOptions options_;
};

}  // namespace weft::optim
