// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/cosine.h"

#include <cmath>
#include <numbers>

#include "kernels/error.h"

namespace weft::optim {

CosineSchedule::CosineSchedule(int64_t steps, double end) : steps_(steps), end_(end) {
  WEFT_CHECK(steps >= 1, "CosineSchedule: expected at least 1 step, got ", steps);
}

double CosineSchedule::lr(int64_t step, double base) const {
  const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps_);
  return end_ + (base - end_) * (1 + std::cos(angle)) / 2;
}

CosineRestarts::CosineRestarts(int64_t steps, int64_t factor, double end) : steps_(steps), factor_(factor), end_(end) {
  WEFT_CHECK(steps >= 1 && factor >= 1, "CosineRestarts: expected at least 1 step and a factor of at least 1, got ",
             steps, " and ", factor);
}

double CosineRestarts::lr(int64_t step, double base) const {
  int64_t period = steps_;
  if (factor_ == 1) step %= period;
  for (; step >= period; period *= factor_) step -= period;
  return CosineSchedule(period, end_).lr(step, base);
}

}  // namespace weft::optim
