// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"

namespace weft::optim {

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool maximize = false;
};

/// d = g + weight_decay w; v = momentum v + (1 - dampening) d (v = d at first); w -= lr (nesterov ? d + momentum v : v)
/// (Sutskever et al. 2013, in PyTorch's form). Errors: nesterov without momentum or with dampening.
class SGD : public Optimizer {
 public:
  SGD(const std::vector<NamedTensor>& parameters, const SgdOptions& options);
  SGD(const std::vector<ParameterGroup>& groups, const SgdOptions& options);

 private:
  void update(const Range& range) override;
  SgdOptions options_;
};

}  // namespace weft::optim
