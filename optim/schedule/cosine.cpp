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

}  // namespace weft::optim
