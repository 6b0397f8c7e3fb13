// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/schedule/schedule.h"

namespace weft::optim {

struct OneCycleOptions {
  double max_lr = 0.1;
  int64_t steps = 0;          ///< of the whole cycle
  double rise = 0.3;          ///< share of the steps before the maximum
  double start_divisor = 25;  ///< start = max_lr / start_divisor
  double end_divisor = 1e4;   ///< end = start / end_divisor
  bool linear = false;        ///< straight lines, not half cosines
  bool three_phase = false;   ///< mirrors the rise back to the start, then falls to the end
};

/// One rise to max_lr and one fall (Smith and Topin 2018), at the same steps as PyTorch's OneCycleLR without cycling
/// momentum. The base is not used. Errors: steps below 1, rise outside [0, 1]; at run time a step outside the cycle.
class OneCycleSchedule : public Schedule {
 public:
  explicit OneCycleSchedule(OneCycleOptions options);
  double lr(int64_t step, double base) const override;

 private:
  OneCycleOptions options_;
};

}  // namespace weft::optim
