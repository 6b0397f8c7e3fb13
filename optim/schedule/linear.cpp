// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/linear.h"

#include <algorithm>

#include "kernels/error.h"

namespace weft::optim {

LinearSchedule::LinearSchedule(int64_t steps, LinearScheduleOptions options) : steps_(steps), options_(options) {
  WEFT_CHECK(steps >= 1, "LinearSchedule: expected at least 1 step, got ", steps);
}

double LinearSchedule::lr(int64_t step, double base) const {
  const double done = static_cast<double>(std::min(step, steps_)) / static_cast<double>(steps_);
  return base * (options_.start + (options_.end - options_.start) * done);
}

}  // namespace weft::optim
