// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/schedule/schedule.h"

namespace weft::optim {

/// One schedule after the other: schedule i starts at milestone i - 1 and counts its steps from there (PyTorch's
/// SequentialLR). A warm-up before a cosine:
///   SequentialSchedule({std::make_shared<LinearSchedule>(5), std::make_shared<CosineSchedule>(85)}, {5})
class SequentialSchedule : public Schedule {
 public:
  /// Errors: not one milestone less than schedules, milestones that do not rise.
  SequentialSchedule(std::vector<SchedulePtr> schedules, std::vector<int64_t> milestones);
  double lr(int64_t step, double base) const override;

 private:
  std::vector<SchedulePtr> schedules_;
  std::vector<int64_t> milestones_;
};

}  // namespace weft::optim
