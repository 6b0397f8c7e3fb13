// SPDX-License-Identifier: Apache-2.0
#include "optim/scheduler.h"

namespace weft::optim {

Scheduler::Scheduler(Optimizer& optimizer, SchedulePtr schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)) {
  WEFT_CHECK(schedule_, "Scheduler: expected a schedule, got null");
  set_step(0);
}

void Scheduler::set_step(int64_t step) {
  WEFT_CHECK(step >= 0, "Scheduler: expected a step of at least 0, got ", step);
  for (int group = 0; group < optimizer_.groups(); ++group)
    optimizer_.set_lr(schedule_->lr(step, optimizer_.base_lr(group)), group);
  step_ = step;
}

}  // namespace weft::optim
