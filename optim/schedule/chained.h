// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/schedule/schedule.h"

namespace weft::optim {

/// Each schedule is applied to the result of the one before: lr = last(step, … first(step, base)). For schedules that
/// multiply the base (step, multi-step, linear) that is PyTorch's ChainedScheduler.
class ChainedSchedule : public Schedule {
 public:
  /// Errors: none given.
  explicit ChainedSchedule(std::vector<SchedulePtr> schedules);
  double lr(int64_t step, double base) const override;

 private:
  std::vector<SchedulePtr> schedules_;
};

}  // namespace weft::optim
