// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/schedule/schedule.h"

namespace weft::optim {

struct LinearScheduleOptions {
  double start = 1.0 / 3, end = 1;  ///< factors of the base
};

/// lr = base (start + (end - start) min(step, steps) / steps): the warm-up (Goyal et al. 2017), or with {1, 0} the
/// decay.
class LinearSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit LinearSchedule(int64_t steps, LinearScheduleOptions options = {});
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  LinearScheduleOptions options_;
};

}  // namespace weft::optim
