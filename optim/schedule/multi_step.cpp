// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/multi_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/error.h"

namespace weft::optim {

MultiStepSchedule::MultiStepSchedule(std::vector<int64_t> milestones, double gamma)
    : milestones_(std::move(milestones)), gamma_(gamma) {
  WEFT_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), "MultiStepSchedule: milestones must rise");
}

double MultiStepSchedule::lr(int64_t step, double base) const {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
  return base * std::pow(gamma_, static_cast<double>(passed));
}

}  // namespace weft::optim
