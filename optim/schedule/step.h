// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/schedule/schedule.h"

namespace weft::optim {

/// lr = base gamma^floor(step / size).
class StepSchedule : public Schedule {
 public:
  /// Errors: size below 1.
  StepSchedule(int64_t size, double gamma = 0.1);
  double lr(int64_t step, double base) const override;

 private:
  int64_t size_;
  double gamma_;
};

}  // namespace weft::optim
