// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizers.h"
#include "optim/reduce_on_plateau.h"
#include "optim/schedule.h"
#include "tests/golden/golden.h"

namespace weft::golden {
namespace {

using namespace optim;

constexpr double kBase = 0.4;

SchedulePtr schedule(const std::string& name) {
  if (name == "step") return std::make_shared<StepSchedule>(3, 0.7);
  if (name == "multi_step") return std::make_shared<MultiStepSchedule>(std::vector<int64_t>{2, 5, 5, 9}, 0.3);
  if (name == "cosine") return std::make_shared<CosineSchedule>(9, 0.01);
  if (name == "linear") return std::make_shared<LinearSchedule>(5, LinearScheduleOptions{0.1, 1});
  if (name == "linear_decay") return std::make_shared<LinearSchedule>(7, LinearScheduleOptions{1, 0});
  if (name == "one_cycle") return std::make_shared<OneCycleSchedule>(OneCycleOptions{.max_lr = 0.9, .steps = 23});
  if (name == "one_cycle_linear")
    return std::make_shared<OneCycleSchedule>(OneCycleOptions{
        .max_lr = 0.9, .steps = 20, .rise = 0.4, .start_divisor = 10, .end_divisor = 100, .linear = true});
  if (name == "one_cycle_three")
    return std::make_shared<OneCycleSchedule>(
        OneCycleOptions{.max_lr = 0.9, .steps = 25, .rise = 0.35, .three_phase = true});
  if (name == "chained")
    return std::make_shared<ChainedSchedule>(std::vector<SchedulePtr>{
        std::make_shared<LinearSchedule>(4, LinearScheduleOptions{0.2, 1}), std::make_shared<StepSchedule>(5, 0.5)});
  if (name == "sequential")
    return std::make_shared<SequentialSchedule>(
        std::vector<SchedulePtr>{std::make_shared<LinearSchedule>(4, LinearScheduleOptions{0.1, 1}),
                                 std::make_shared<CosineSchedule>(10), std::make_shared<StepSchedule>(2, 0.1)},
        std::vector<int64_t>{4, 12});
  if (name == "exponential") return std::make_shared<ExponentialSchedule>(0.8);
  if (name == "polynomial") return std::make_shared<PolynomialSchedule>(7, 2);
  if (name == "lambda")
    return std::make_shared<LambdaSchedule>([](int64_t step) { return 1 / (1 + static_cast<double>(step)); });
  if (name == "restarts") return std::make_shared<CosineRestarts>(4, 2, 0.02);
  const auto warmup = [](int64_t steps, double start, SchedulePtr then) {
    return std::make_shared<SequentialSchedule>(
        std::vector<SchedulePtr>{std::make_shared<LinearSchedule>(steps, LinearScheduleOptions{start, 1}),
                                 std::move(then)},
        std::vector<int64_t>{steps});
  };
  if (name == "warmup_exponential") return warmup(4, 0.1, std::make_shared<ExponentialSchedule>(0.8));
  if (name == "warmup_polynomial") return warmup(3, 0.25, std::make_shared<PolynomialSchedule>(6, 0.9));
  fail("no schedule '", name, "'");
}

class Schedules : public testing::TestWithParam<std::string> {};

TEST_P(Schedules, EqualPyTorch) {
  const std::vector<double> expected = File("schedules")[GetParam()].to_vector<double>();
  const SchedulePtr mine = schedule(GetParam());
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(mine->lr(static_cast<int64_t>(step), kBase), expected[step], 1e-12) << "step " << step;
}

INSTANTIATE_TEST_SUITE_P(All, Schedules,
                         testing::Values("step", "multi_step", "cosine", "linear", "linear_decay", "one_cycle",
                                         "one_cycle_linear", "one_cycle_three", "chained", "sequential", "exponential",
                                         "polynomial", "lambda", "restarts", "warmup_exponential", "warmup_polynomial"),
                         [](const auto& test) { return test.param; });

void expect_plateau(const std::string& name, const ReduceOnPlateauOptions& options) {
  const File file("schedules");
  const std::vector<double> expected = file[name].to_vector<double>(), metrics = file["metrics"].to_vector<double>();
  const NamedTensor weight{"w", Tensor::zeros({1}).requires_grad_()};
  SGD sgd(std::vector{weight}, {.lr = kBase});
  ReduceOnPlateau plateau(sgd, options);
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(sgd.lr(), expected[step], 1e-12) << "step " << step;
    plateau.step(metrics[step]);
  }
}

TEST(Plateau, EqualsPyTorch) {
  expect_plateau("plateau", {.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.06});
  expect_plateau("plateau_max",
                 {.maximize = true, .factor = 0.2, .patience = 1, .threshold = 0.05, .absolute_threshold = true});
}

}  // namespace
}  // namespace weft::golden
