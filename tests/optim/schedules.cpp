// SPDX-License-Identifier: Apache-2.0
// The learning rates themselves are compared with PyTorch's in tests/golden/schedules.cpp.
#include "optim/optimizers.h"
#include "optim/reduce_on_plateau.h"
#include "optim/schedule.h"
#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

std::vector<ParameterGroup> two_groups() {
  ParameterGroup first, second;
  first.parameters = {{"a", Tensor::zeros({2}).requires_grad_()}};
  second.parameters = {{"b", Tensor::zeros({3}).requires_grad_()}};
  second.lr = 0.5;
  return {first, second};
}

TEST(Scheduler, SetsEveryGroupFromItsOwnBase) {
  SGD sgd(two_groups(), {.lr = 0.1});
  Scheduler scheduler(sgd, std::make_shared<StepSchedule>(2, 0.5));
  for (int step = 0; step < 5; ++step, scheduler.step()) {
    EXPECT_DOUBLE_EQ(sgd.lr(0), 0.1 / (1 << step / 2));
    EXPECT_DOUBLE_EQ(sgd.lr(1), 0.5 / (1 << step / 2));
  }
}

TEST(CosineRestarts, BeginsAgainAsInPyTorch) {
  const CosineRestarts longer(2, 2), alike(3, 1, 0.25);
  const double root = std::sqrt(0.5);
  const std::vector<double> want{1, 0.5, 1, (1 + root) / 2, 0.5, (1 - root) / 2, 1};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(longer.lr(static_cast<int64_t>(i), 1), want[i], 1e-15) << i;
  for (int64_t i = 0; i < 9; ++i) EXPECT_NEAR(alike.lr(i, 1), (std::array{1.0, 0.8125, 0.4375}[i % 3]), 1e-15) << i;
}

TEST(Scheduler, ResumesByItsStep) {
  SGD sgd(two_groups(), {.lr = 0.1}), other(two_groups(), {.lr = 0.1});
  Scheduler scheduler(sgd, std::make_shared<CosineSchedule>(10)), resumed(other, std::make_shared<CosineSchedule>(10));
  for (int step = 0; step < 4; ++step) scheduler.step();
  resumed.load_state_dict(scheduler.state_dict());
  EXPECT_EQ(resumed.steps(), 4);
  EXPECT_EQ(other.lr(1), sgd.lr(1));
  EXPECT_EQ(error_text([&] { scheduler.set_step(-1); }), "Scheduler: expected a step of at least 0, got -1");
  EXPECT_EQ(error_text([&] { Scheduler(sgd, nullptr); }), "Scheduler: expected a schedule, got null");
}

TEST(ReduceOnPlateau, ResumesFromItsState) {
  SGD sgd(two_groups(), {.lr = 0.1}), other(two_groups(), {.lr = 0.1});
  const ReduceOnPlateauOptions options{.factor = 0.5, .patience = 1};
  ReduceOnPlateau plateau(sgd, options), resumed(other, options);
  plateau.step(1);
  plateau.step(2);
  resumed.load_state_dict(plateau.state_dict());
  for (int i = 0; i < 3; ++i) {
    plateau.step(2);
    resumed.step(2);
    EXPECT_EQ(other.lr(0), sgd.lr(0));
  }
  EXPECT_LT(sgd.lr(0), 0.1);
  EXPECT_EQ(error_text([&] {
              resumed.load_state_dict({{}, {{"best", 9}}});
            }),
            "state dict: no number named 'bad_steps'");
  EXPECT_EQ(resumed.state_dict().scalar("best"), plateau.state_dict().scalar("best")) << "nothing has changed";
}

TEST(ReduceOnPlateau, StepsAfterAReductionDoNotCount) {
  SGD sgd({{"w", Tensor::ones({1}).requires_grad_()}}, {.lr = 1});
  ReduceOnPlateau plateau(sgd, {.factor = 0.5, .patience = 1, .cooldown = 2});
  std::vector<double> rates;
  for (int i = 0; i < 8; ++i) {
    plateau.step(1);
    rates.push_back(sgd.lr(0));
  }
  // Best at first; two bad ones reduce; two do not count; two bad ones reduce again.
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25}));
}

TEST(ReduceOnPlateau, NanIsNotBetter) {
  SGD sgd(two_groups(), {.lr = 0.1});
  ReduceOnPlateau plateau(sgd, {.patience = 0});
  plateau.step(std::nan(""));
  EXPECT_DOUBLE_EQ(sgd.lr(0), 0.01);
}

TEST(Schedules, AWarmUpIsALineBeforeTheMain) {
  const auto main = std::make_shared<StepSchedule>(1, 0.5);
  const SchedulePtr warmed = after_warmup(2, 0.25, main);
  std::vector<double> rates;
  for (int64_t step = 0; step < 4; ++step) rates.push_back(warmed->lr(step, 8));
  EXPECT_EQ(rates, (std::vector<double>{2, 5, 8, 4}));
  EXPECT_EQ(after_warmup(0, 0.25, main), main);
}

TEST(Schedules, ErrorsOfTheConstructors) {
  EXPECT_EQ(error_text([] { StepSchedule(0); }), "StepSchedule: expected a size of at least 1, got 0");
  EXPECT_EQ(error_text([] { MultiStepSchedule({3, 2}); }), "MultiStepSchedule: milestones must rise");
  EXPECT_EQ(error_text([] { CosineSchedule(0); }), "CosineSchedule: expected at least 1 step, got 0");
  EXPECT_EQ(error_text([] { CosineRestarts(4, 0); }),
            "CosineRestarts: expected at least 1 step and a factor of at least 1, got 4 and 0");
  EXPECT_EQ(error_text([] { LinearSchedule(0); }), "LinearSchedule: expected at least 1 step, got 0");
  EXPECT_EQ(error_text([] { OneCycleSchedule({.steps = 0}); }), "OneCycleSchedule: expected at least 1 step, got 0");
  EXPECT_EQ(error_text([] { OneCycleSchedule({.steps = 9, .rise = 2}); }),
            "OneCycleSchedule: expected a rise in [0, 1], got 2");
  EXPECT_EQ(error_text([] { OneCycleSchedule({.steps = 9}).lr(9, 1); }),
            "OneCycleSchedule: the cycle has 9 steps, asked for step 9");
  EXPECT_EQ(error_text([] { ChainedSchedule({}); }), "ChainedSchedule: expected at least one schedule, got none");
  EXPECT_EQ(error_text([] { SequentialSchedule({std::make_shared<StepSchedule>(1)}, {3}); }),
            "SequentialSchedule: 1 schedules need one milestone less, got 1");
  const auto line = std::make_shared<LinearSchedule>(3);
  EXPECT_EQ(error_text([&] {
              SequentialSchedule({line, nullptr}, {3});
            }),
            "SequentialSchedule: expected a schedule, got null at position 1");
  EXPECT_EQ(error_text([] { ChainedSchedule({nullptr}); }),
            "ChainedSchedule: expected a schedule, got null at position 0");
  for (const int64_t steps : {0, 3})
    EXPECT_EQ(error_text([&] { after_warmup(steps, 0.1, nullptr); }), "after_warmup: expected a schedule, got null");
  SGD sgd(two_groups(), {.lr = 0.1});
  EXPECT_EQ(error_text([&] { ReduceOnPlateau(sgd, {.factor = 1}); }),
            "ReduceOnPlateau: expected a factor in (0, 1), got 1");
  EXPECT_EQ(error_text([&] { ReduceOnPlateau(sgd, {.patience = -1}); }),
            "ReduceOnPlateau: expected patience and cooldown of at least 0, got -1 and 0");
}

// A cycle so short that its rise has no length.
TEST(OneCycle, WithoutRoomToRise) {
  const OneCycleSchedule schedule({.max_lr = 0.5, .steps = 2, .rise = 0.5});
  EXPECT_DOUBLE_EQ(schedule.lr(0, 1), 0.5);
  EXPECT_NEAR(schedule.lr(1, 1), 0.5 / 25 / 1e4, 1e-12);
}

}  // namespace
}  // namespace weft::optim
