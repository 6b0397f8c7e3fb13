// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

/// A learning rate as a function of the step: no state, so resuming is setting the step. The caller chooses the unit of
/// a step (a batch, an epoch).
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The learning rate at `step` (from 0) of a group whose own learning rate is `base`.
  virtual double lr(int64_t step, double base) const = 0;
  /// The rates of all groups: optimizer.set_lr(schedule.lr(step, optimizer.base_lr())).
  Rates lr(int64_t step, const Rates& bases) const;
};

using SchedulePtr = std::shared_ptr<const Schedule>;

/// lr = base gamma^floor(step / size).
class StepSchedule : public Schedule {
 public:
  /// Errors: size below 1.
  StepSchedule(int64_t size, double gamma = 0.1);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  int64_t size_;
  double gamma_;
};

/// lr = base gamma^(number of milestones <= step).
class MultiStepSchedule : public Schedule {
 public:
  /// Milestones may be equal: both count. Errors: milestones that fall.
  MultiStepSchedule(std::vector<int64_t> milestones, double gamma = 0.1);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// lr = base gamma^step.
class ExponentialSchedule : public Schedule {
 public:
  explicit ExponentialSchedule(double gamma) : gamma_(gamma) {}
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  double gamma_;
};

/// lr = base (1 - min(step, steps) / steps)^power (PyTorch's PolynomialLR).
class PolynomialSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit PolynomialSchedule(int64_t steps, double power = 1);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  double power_;
};

/// lr = base factor(step): any function of the step (PyTorch's LambdaLR).
class LambdaSchedule : public Schedule {
 public:
  /// Errors: no function.
  explicit LambdaSchedule(std::function<double(int64_t step)> factor);
  using Schedule::lr;
  double lr(int64_t step, double base) const override { return base * factor_(step); }

 private:
  std::function<double(int64_t step)> factor_;
};

struct LinearScheduleOptions {
  double start = 1.0 / 3, end = 1;  ///< factors of the base
};

/// lr = base (start + (end - start) min(step, steps) / steps): the warm-up (Goyal et al. 2017), or with {1, 0} the
/// decay.
class LinearSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit LinearSchedule(int64_t steps, LinearScheduleOptions options = {});
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  LinearScheduleOptions options_;
};

/// lr = end + (base - end) (1 + cos(pi step / steps)) / 2 (Loshchilov and Hutter 2017). After `steps` it rises again,
/// as in PyTorch.
class CosineSchedule : public Schedule {
 public:
  /// Errors: steps below 1.
  explicit CosineSchedule(int64_t steps, double end = 0);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_;
  double end_;
};

/// A cosine that begins again at the base rate after `steps` steps, then after `factor` times as many each time
/// (Loshchilov and Hutter 2017; PyTorch's CosineAnnealingWarmRestarts).
class CosineRestarts : public Schedule {
 public:
  /// Errors: steps or factor below 1.
  explicit CosineRestarts(int64_t steps, int64_t factor = 1, double end = 0);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  int64_t steps_, factor_;
  double end_;
};

struct OneCycleOptions {
  double max_lr = 0.1;
  int64_t steps = 0;          ///< steps of the whole cycle
  double rise = 0.3;          ///< share of the steps before the maximum
  double start_divisor = 25;  ///< start = max_lr / start_divisor
  double end_divisor = 1e4;   ///< end = start / end_divisor
  bool linear = false;        ///< straight lines, not half cosines
  bool three_phase = false;   ///< mirrors the rise back to the start, then falls to the end
};

/// A rise to max_lr and a fall (Smith and Topin 2018), at the same steps as PyTorch's OneCycleLR without cycling
/// momentum. The base is not used. Errors: steps below 1, rise outside [0, 1]; at run time a step outside the cycle.
class OneCycleSchedule : public Schedule {
 public:
  explicit OneCycleSchedule(OneCycleOptions options);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  OneCycleOptions options_;
};

/// One schedule after the other: schedule i starts at milestone i - 1 and counts its steps from there (PyTorch's
/// SequentialLR). A warm-up before a cosine:
///   SequentialSchedule({std::make_shared<LinearSchedule>(5), std::make_shared<CosineSchedule>(85)}, {5})
class SequentialSchedule : public Schedule {
 public:
  /// Errors: not one milestone less than schedules, a null schedule, milestones that fall.
  SequentialSchedule(std::vector<SchedulePtr> schedules, std::vector<int64_t> milestones);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  std::vector<SchedulePtr> schedules_;
  std::vector<int64_t> milestones_;
};

/// A linear rise over `steps` from `start` times the base, then `main`, which counts from there; 0 steps: `main` alone.
/// Errors: a null `main`.
SchedulePtr after_warmup(int64_t steps, double start, SchedulePtr main);

/// Each schedule is applied to the result of the one before: lr = last(step, … first(step, base)). For schedules that
/// multiply the base (step, multi-step, linear) that is PyTorch's ChainedScheduler.
class ChainedSchedule : public Schedule {
 public:
  /// Errors: none given, or a null one.
  explicit ChainedSchedule(std::vector<SchedulePtr> schedules);
  using Schedule::lr;
  double lr(int64_t step, double base) const override;

 private:
  std::vector<SchedulePtr> schedules_;
};

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

  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict) { set_step(static_cast<int64_t>(dict.scalar("step"))); }

 private:
  Optimizer& optimizer_;
  SchedulePtr schedule_;
  int64_t step_ = 0;
};

}  // namespace weft::optim
