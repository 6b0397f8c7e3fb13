// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "optim/schedule/schedule.h"

namespace weft::optim {

/// lr = base gamma^(number of milestones <= step).
class MultiStepSchedule : public Schedule {
 public:
  /// Errors: milestones that do not rise.
  MultiStepSchedule(std::vector<int64_t> milestones, double gamma = 0.1);
  double lr(int64_t step, double base) const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

}  // namespace weft::optim
