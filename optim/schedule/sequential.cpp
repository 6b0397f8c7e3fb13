// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/sequential.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::optim {

SequentialSchedule::SequentialSchedule(std::vector<SchedulePtr> schedules, std::vector<int64_t> milestones)
    : schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  WEFT_CHECK(schedules_.size() == milestones_.size() + 1, "SequentialSchedule: ", schedules_.size(),
             " schedules need one milestone less, got ", milestones_.size());
  WEFT_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialSchedule: milestones must rise");
}

double SequentialSchedule::lr(int64_t step, double base) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
  const int64_t begin = next == milestones_.begin() ? 0 : *(next - 1);
  return schedules_[static_cast<size_t>(next - milestones_.begin())]->lr(step - begin, base);
}

}  // namespace weft::optim
