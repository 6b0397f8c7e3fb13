// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/schedule/schedule.h"

namespace weft::optim {

/// lr = end + (base - end) (1 + cos(pi step / steps)) / 2 (Loshchilov and Hutter 2017). After `steps` it rises again,
/// as in PyTorch.
class CosineSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit CosineSchedule(int64_t steps, double end = 0);
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  double end_;
};

}  // namespace weft::optim
