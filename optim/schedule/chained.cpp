// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/chained.h"

#include "kernels/error.h"

namespace weft::optim {

ChainedSchedule::ChainedSchedule(std::vector<SchedulePtr> schedules) : schedules_(std::move(schedules)) {
  WEFT_CHECK(!schedules_.empty(), "ChainedSchedule: expected at least one schedule, got none");
}

double ChainedSchedule::lr(int64_t step, double base) const {
  double rate = base;
  for (const SchedulePtr& schedule : schedules_) rate = schedule->lr(step, rate);
  return rate;
}

}  // namespace weft::optim
