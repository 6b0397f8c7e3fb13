// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace weft::optim {

/// Sets an optimizer's learning rates by a schedule and counts the steps.
///   Scheduler scheduler(sgd, std::make_shared<CosineSchedule>(epochs));   // sets the rate of step 0
///   for (…) { train one epoch; scheduler.step(); }
class Scheduler {
 public:
  /// The optimizer must live as long as this.
  Scheduler(Optimizer& optimizer, SchedulePtr schedule);
  void step() { set_step(step_ + 1); }
  /// Jumps to a step, as a resume does.
  void set_step(int64_t step);
  int64_t steps() const { return step_; }

  StateDict state_dict() const { return {{}, {{"step", static_cast<double>(step_)}}}; }
  void load_state_dict(const StateDict& dict) { set_step(static_cast<int64_t>(dict.scalar("step"))); }

 private:
  Optimizer& optimizer_;
  SchedulePtr schedule_;
  int64_t step_ = 0;
};

}  // namespace weft::optim
