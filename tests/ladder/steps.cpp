// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <map>

#include "kernels/ladder/ladder.h"
#include "tests/ladder/reference.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
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

  void run(const Step& step, const DeviceArray& y) const {
    std::vector<DeviceArray> arrays;
    std::vector<kernels::View> views;
    for (size_t i = 0; i < inputs.size(); ++i) {
      arrays.emplace_back(step.device, problem.dtype, problem.inputs[i], inputs[i]);
      views.push_back(arrays.back());
    }
    step.run(queue_on(step.device), y, views);
  }
};

class Ladders : public testing::TestWithParam<std::string> {
 protected:
  const Ladder& ladder() const { return kernels::ladder::find(GetParam()); }
};

TEST_P(Ladders, EveryStepEqualsReference) {
  const Data whole(ladder(), ladder().counted), odd(ladder(), odd_sizes().at(GetParam()));
  for (const DeviceKind kind : device_runs())
    for (const Step& step : kernels::ladder::steps(ladder(), kind))
      for (const Data* data : {&whole, &odd}) {
        if (!step.available(queue_on(kind))) continue;
        if (data == &odd && step.sizes == kernels::ladder::Sizes::multiples) continue;  // see the next test
        SCOPED_TRACE(str(step.name, data == &odd ? ", odd sizes" : "", " on ", name(kind)));
        const DeviceArray y(kind, data->problem.dtype, data->problem.output);
        data->run(step, y);
        EXPECT_TRUE(near(y.host(), data->want.y, tolerance(data->problem.dtype, data->want.terms)));
      }
}

TEST_P(Ladders, StepsThatWantWholeTilesSaySo) {
  const Data odd(ladder(), odd_sizes().at(GetParam()));
  for (const DeviceKind kind : test_devices())
    for (const Step& step : kernels::ladder::steps(ladder(), kind)) {
      if (step.sizes == kernels::ladder::Sizes::any) continue;
      const DeviceArray y(kind, odd.problem.dtype, odd.problem.output);
      EXPECT_THAT(error_text([&] { odd.run(step, y); }),
                  testing::MatchesRegex(str(step.name, ": expected .* a multiple of .*, got .*")));
    }
}

TEST_P(Ladders, ClimbFromOneWithoutGapsToWeftOnEveryDevice) {
  for (const DeviceKind kind : test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    const auto steps = kernels::ladder::steps(ladder(), kind);
    ASSERT_GE(steps.size(), 4u) << name(kind);
    for (size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i].number(), static_cast<int>(i) + 1);
    EXPECT_THAT(steps.back().title(), testing::EndsWith("_weft"));
    EXPECT_EQ(steps.back().sizes, kernels::ladder::Sizes::any);
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Ladder& ladder : kernels::ladder::all()) names.push_back(ladder.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Ladders, testing::ValuesIn(names()), [](const auto& test) { return test.param; });

/// The sizes of the tables are too small for a ring of stages to go round.
TEST(Ladder, RingsOfStagesGoRound) {
  const Ladder& ladder = kernels::ladder::find("matmul_bf16");
  const Data deep(ladder, {256, 256, 448});
  for (const DeviceKind kind : device_runs())
    for (const Step& step : kernels::ladder::steps(ladder, kind)) {
      if (step.number() < 5 || !step.available(queue_on(kind))) continue;
      SCOPED_TRACE(str(step.name, " on ", name(kind)));
      const DeviceArray y(kind, deep.problem.dtype, deep.problem.output);
      deep.run(step, y);
      EXPECT_TRUE(near(y.host(), deep.want.y, tolerance(deep.problem.dtype, deep.want.terms)));
    }
}

/// More tiles than the emulated device has multiprocessors, more than a panel of rows of them, and a panel that is not
/// full: blocks that stay go from tile to tile while the ring goes on.
TEST(Ladder, BlocksThatStayTakeManyTiles) {
  const Ladder& ladder = kernels::ladder::find("matmul_bf16");
  for (const Sizes& sizes : {Sizes{2304, 512, 64}, Sizes{512, 768, 192}}) {
    const Data data(ladder, sizes);
    for (const DeviceKind kind : device_runs())
      for (const Step& step : kernels::ladder::steps(ladder, kind)) {
        if (step.number() < 9 || !step.available(queue_on(kind))) continue;
        SCOPED_TRACE(str(step.name, " on ", name(kind)));
        const DeviceArray y(kind, data.problem.dtype, data.problem.output);
        data.run(step, y);
        EXPECT_TRUE(near(y.host(), data.want.y, tolerance(data.problem.dtype, data.want.terms)));
      }
  }
}

TEST(Ladder, NamesTheLaddersWhenAskedForAnother) {
  EXPECT_THAT(error_text([] { kernels::ladder::find("matmul"); }),
              testing::MatchesRegex("ladder: expected one of transpose, reduce, .*, got 'matmul'"));
}

}  // namespace
}  // namespace weft::tests
