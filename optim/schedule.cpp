// SPDX-License-Identifier: Apache-2.0
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/error.h"

namespace weft::optim {
namespace {

struct Phase {
  double end;  // step of its end
  double from, to;
};

void check_schedules(const char* name, const std::vector<SchedulePtr>& schedules) {
  for (size_t i = 0; i < schedules.size(); ++i)
    WEFT_CHECK(schedules[i], name, ": expected a schedule, got null at position ", i);
}

}  // namespace

Rates Schedule::lr(int64_t step, const Rates& bases) const {
  Rates rates;
  for (const double base : bases) rates.push_back(lr(step, base));
  return rates;
}

StepSchedule::StepSchedule(int64_t size, double gamma) : size_(size), gamma_(gamma) {
  WEFT_CHECK(size >= 1, "StepSchedule: expected a size of at least 1, got ", size);
}

double StepSchedule::lr(int64_t step, double base) const {
  return base * std::pow(gamma_, static_cast<double>(step / size_));
}

MultiStepSchedule::MultiStepSchedule(std::vector<int64_t> milestones, double gamma)
    : milestones_(std::move(milestones)), gamma_(gamma) {
  WEFT_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), "MultiStepSchedule: milestones must rise");
}

double MultiStepSchedule::lr(int64_t step, double base) const {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), step) - milestones_.begin();
  return base * std::pow(gamma_, static_cast<double>(passed));
}

double ExponentialSchedule::lr(int64_t step, double base) const {
  return base * std::pow(gamma_, static_cast<double>(step));
}

PolynomialSchedule::PolynomialSchedule(int64_t steps, double power) : steps_(steps), power_(power) {
  WEFT_CHECK(steps >= 1, "PolynomialSchedule: expected at least 1 step, got ", steps);
}

double PolynomialSchedule::lr(int64_t step, double base) const {
  const double left = 1 - static_cast<double>(std::min(step, steps_)) / static_cast<double>(steps_);
  return base * std::pow(left, power_);
}

LambdaSchedule::LambdaSchedule(std::function<double(int64_t step)> factor) : factor_(std::move(factor)) {
  WEFT_CHECK(factor_, "LambdaSchedule: expected a function of the step, got none");
}

LinearSchedule::LinearSchedule(int64_t steps, LinearScheduleOptions options) : steps_(steps), options_(options) {
  WEFT_CHECK(steps >= 1, "LinearSchedule: expected at least 1 step, got ", steps);
}

double LinearSchedule::lr(int64_t step, double base) const {
  const double done = static_cast<double>(std::min(step, steps_)) / static_cast<double>(steps_);
  return base * (options_.start + (options_.end - options_.start) * done);
}

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

OneCycleSchedule::OneCycleSchedule(OneCycleOptions options) : options_(options) {
  WEFT_CHECK(options.steps >= 1, "OneCycleSchedule: expected at least 1 step, got ", options.steps);
  WEFT_CHECK(options.rise >= 0 && options.rise <= 1, "OneCycleSchedule: expected a rise in [0, 1], got ", options.rise);
}

double OneCycleSchedule::lr(int64_t step, double) const {
  WEFT_CHECK(step >= 0 && step < options_.steps, "OneCycleSchedule: the cycle has ", options_.steps,
             " steps, asked for step ", step);
  const double steps = static_cast<double>(options_.steps);
  const double peak = options_.rise * steps - 1;
  const double start = options_.max_lr / options_.start_divisor;
  const double end = start / options_.end_divisor;
  std::vector<Phase> phases{{peak, start, options_.max_lr}};
  if (options_.three_phase) phases.push_back({2 * peak, options_.max_lr, start});
  phases.push_back({steps - 1, options_.three_phase ? start : options_.max_lr, end});

  double begin = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const auto [phase_end, from, to] = phases[i];
    if (static_cast<double>(step) <= phase_end || i + 1 == phases.size()) {
      const double length = phase_end - begin;
      const double done = length > 0 ? (static_cast<double>(step) - begin) / length : 1;
      if (options_.linear) return from + (to - from) * done;
      return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * done));
    }
    begin = phase_end;
  }
  return end;
}

SequentialSchedule::SequentialSchedule(std::vector<SchedulePtr> schedules, std::vector<int64_t> milestones)
    : schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  WEFT_CHECK(schedules_.size() == milestones_.size() + 1, "SequentialSchedule: ", schedules_.size(),
             " schedules need one milestone less, got ", milestones_.size());
  check_schedules("SequentialSchedule", schedules_);
  WEFT_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()), "SequentialSchedule: milestones must rise");
}

double SequentialSchedule::lr(int64_t step, double base) const {
  const auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
  const int64_t begin = next == milestones_.begin() ? 0 : *(next - 1);
  return schedules_[static_cast<size_t>(next - milestones_.begin())]->lr(step - begin, base);
}

SchedulePtr after_warmup(int64_t steps, double start, SchedulePtr main) {
  WEFT_CHECK(main, "after_warmup: expected a schedule, got null");
  if (steps == 0) return main;
  auto rise = std::make_shared<LinearSchedule>(steps, LinearScheduleOptions{start, 1});
  return std::make_shared<SequentialSchedule>(std::vector<SchedulePtr>{std::move(rise), std::move(main)},
                                              std::vector<int64_t>{steps});
}

ChainedSchedule::ChainedSchedule(std::vector<SchedulePtr> schedules) : schedules_(std::move(schedules)) {
  WEFT_CHECK(!schedules_.empty(), "ChainedSchedule: expected at least one schedule, got none");
  check_schedules("ChainedSchedule", schedules_);
}

double ChainedSchedule::lr(int64_t step, double base) const {
  double rate = base;
  for (const SchedulePtr& schedule : schedules_) rate = schedule->lr(step, rate);
  return rate;
}

Scheduler::Scheduler(Optimizer& optimizer, SchedulePtr schedule)
    : optimizer_(optimizer), schedule_(std::move(schedule)) {
  WEFT_CHECK(schedule_, "Scheduler: expected a schedule, got null");
  set_step(0);
}

void Scheduler::set_step(int64_t step) {
  WEFT_CHECK(step >= 0, "Scheduler: expected a step of at least 0, got ", step);
  optimizer_.set_lr(schedule_->lr(step, optimizer_.base_lr()));
  step_ = step;
}

StateDict Scheduler::state_dict() const { return {{}, {{"step", static_cast<double>(step_)}}}; }

}  // namespace weft::optim
