// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule/step.h"

#include <cmath>

#include "kernels/error.h"

namespace weft::optim {

StepSchedule::StepSchedule(int64_t size, double gamma) : size_(size), gamma_(gamma) {
  WEFT_CHECK(size >= 1, "StepSchedule: expected a size of at least 1, got ", size);
}

double StepSchedule::lr(int64_t step, double base) const {
  return base * std::pow(gamma_, static_cast<double>(step / size_));
}

}  // namespace weft::optim
