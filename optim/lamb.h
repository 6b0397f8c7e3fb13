// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/by_parameter.h"

namespace weft::optim {

struct LambOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 1e-2;
  bool clip_trust = false;    ///< no parameter moves faster than AdamW would
  bool always_adapt = false;  ///< parameters without weight decay too
  bool maximize = false;
};

/// AdamW for large batches: u = mhat / (sqrt(vhat) + eps) + weight_decay w; w -= lr |w| / |u| u for each parameter (You
/// et al. 2020). Clip the gradient by its norm before, as the paper's BERT does. Errors: a beta outside [0, 1), eps
/// below 0.
class LAMB : public ByParameter {
 public:
  LAMB(const std::vector<NamedTensor>& parameters, const LambOptions& options);
  LAMB(const std::vector<ParameterGroup>& groups, const LambOptions& options);

 private:
  void update_all() override;
  LambOptions options_;
};

}  // namespace weft::optim
