// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>

namespace weft::optim {

/// A learning rate as a function of the step: no state, so resuming is setting the step. What a step is (a batch, an
/// epoch) is the caller's choice.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The learning rate at `step` (from 0) of a group whose own learning rate is `base`.
  virtual double lr(int64_t step, double base) const = 0;
};

using SchedulePtr = std::shared_ptr<const Schedule>;

}  // namespace weft::optim
