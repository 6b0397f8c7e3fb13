// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>

#include "kernels/ladder/ladder.h"
#include "kernels/runtime/capability_scope.h"
#include "tests/ladder/reference.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::ladder::Ladder, kernels::ladder::Problem, kernels::ladder::Step;

/// Sizes that no tile divides.
const std::map<std::string, Sizes>& odd_sizes() {
  static const std::map<std::string, Sizes> sizes = {
      {"transpose", {67, 45}},      {"reduce", {10007}},           {"softmax", {37, 101}},
      {"matmul_f32", {67, 45, 37}}, {"matmul_bf16", {67, 45, 37}}, {"conv2d", {2, 5, 7, 9, 13, 3}},
      {"attention", {2, 77, 64}},
  };
  return sizes;
}

struct Data {
  Problem problem;
  std::vector<Values> inputs;
  Reference want;

  Data(const Ladder& ladder, const Sizes& sizes) : problem(ladder.problem(sizes)) {
    // A long sum of both signs may come to almost nothing, of which rounding is a large part.
    for (const Sizes& input : problem.inputs)
      inputs.push_back(uniform(count_of(input), problem.dtype, input.size() == 1 ? 0 : -1));
    want = reference(ladder, problem, inputs);
  }

  Values run(const Step& step) const {
    std::vector<DeviceArray> arrays;
    std::vector<kernels::View> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      arrays.emplace_back(DeviceKind::cuda, problem.dtype, problem.inputs[i], inputs[i]);
      views.push_back(arrays.back());
    }
    const DeviceArray y(DeviceKind::cuda, problem.dtype, problem.output);
    step.run(queue_on(DeviceKind::cuda), y, views);
    return y.host();
  }

  void expect_equal(const Step& step) const {
    SCOPED_TRACE(step.name);
    in_orders(1, [&] { EXPECT_TRUE(near(run(step), want.y, tolerance(problem.dtype, want.terms))); });
  }
};

/// The steps that this GPU runs, from the one with a number on.
std::vector<Step> steps_of(const Ladder& ladder, int first = 1) {
  std::vector<Step> steps = kernels::ladder::steps(ladder);
  std::erase_if(steps,
                [&](const Step& step) { return step.number() < first || !step.available(queue_on(DeviceKind::cuda)); });
  return steps;
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  }
};

class Ladders : public OnGpu, public testing::WithParamInterface<std::string> {
 protected:
  const Ladder& ladder() const { return kernels::ladder::find(GetParam()); }
};

TEST_P(Ladders, EveryStepEqualsReference) {
  const Data whole(ladder(), ladder().counted), odd(ladder(), odd_sizes().at(GetParam()));
  for (const Step& step : steps_of(ladder())) {
    whole.expect_equal(step);
    if (step.sizes == kernels::ladder::Sizes::any) odd.expect_equal(step);  // the others: see the next test
  }
}

TEST_P(Ladders, StepsThatWantWholeTilesSaySo) {
  const Data odd(ladder(), odd_sizes().at(GetParam()));
  for (const Step& step : steps_of(ladder())) {
    if (step.sizes == kernels::ladder::Sizes::any) continue;
    EXPECT_THAT(error_text([&] { odd.run(step); }),
                testing::MatchesRegex(str(step.name, ": expected .* a multiple of .*, got .*")));
  }
}

TEST_P(Ladders, ClimbFromOneWithoutGapsToWeft) {
  const auto steps = kernels::ladder::steps(ladder());
  ASSERT_GE(steps.size(), 4u);
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].number(), static_cast<int>(i) + 1);
  EXPECT_THAT(steps.back().title(), testing::EndsWith("_weft"));
  EXPECT_EQ(steps.back().sizes, kernels::ladder::Sizes::any);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Ladder& ladder : kernels::ladder::all()) names.push_back(ladder.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Ladders, testing::ValuesIn(names()), [](const auto& test) { return test.param; });

using MatmulBf16 = OnGpu;

/// The sizes of the tables are too small for a ring of stages to go round.
TEST_F(MatmulBf16, RingsOfStagesGoRound) {
  const Ladder& ladder = kernels::ladder::find("matmul_bf16");
  const Data deep(ladder, {256, 256, 448});
  for (const Step& step : steps_of(ladder, 5)) deep.expect_equal(step);
}

/// More tiles than multiprocessors, more than a panel of rows of them, and a panel that is not full: blocks that stay
/// go from tile to tile while the ring goes on.
TEST_F(MatmulBf16, BlocksThatStayTakeManyTiles) {
  const Ladder& ladder = kernels::ladder::find("matmul_bf16");
  const kernels::MultiprocessorScope few(4);
  for (const Sizes& sizes : {Sizes{2304, 512, 64}, Sizes{512, 768, 192}}) {
    const Data data(ladder, sizes);
    for (const Step& step : steps_of(ladder, 9)) data.expect_equal(step);
  }
}

TEST(Ladder, NamesTheLaddersWhenAskedForAnother) {
  EXPECT_THAT(error_text([] { kernels::ladder::find("matmul"); }),
              testing::MatchesRegex("ladder: expected one of transpose, reduce, .*, got 'matmul'"));
}

}  // namespace
}  // namespace weft::tests
