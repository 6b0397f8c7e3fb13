// SPDX-License-Identifier: Apache-2.0
#include "tests/ladder/counts.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/random_values.h"

namespace weft::tests {

namespace {

StepCounts counts_of(const kernels::ladder::Ladder& ladder) {
  const kernels::Queue queue = queue_on(DeviceKind::cuda);
  const auto problem = ladder.problem(ladder.counted);
  std::vector<DeviceArray> inputs;
  std::vector<kernels::View> views;
  for (const Sizes& sizes : problem.inputs) {
    inputs.emplace_back(queue.device.kind, problem.dtype, sizes, uniform(count_of(sizes), problem.dtype));
    views.push_back(inputs.back());
  }
  const DeviceArray y(queue.device.kind, problem.dtype, problem.output);
  StepCounts counts(1);
  for (const auto& step : kernels::ladder::steps(ladder)) {
    counts.push_back({});
    if (!step.available(queue)) continue;
    const auto run = [&] { step.run(queue, y, views); };
    run();  // before the work: not counted
    counts.back() = benchmarks::count(run);
  }
  return counts;
}

}  // namespace

void with_counts(const char* ladder, const std::function<void(const StepCounts&)>& check) {
  if (!runs_on(DeviceKind::cuda) || !benchmarks::can_count()) GTEST_SKIP() << "needs an emulated GPU";
  in_orders(1, [&] { check(counts_of(kernels::ladder::find(ladder))); });
}

namespace {

TEST(Counts, NeedAnEmulatedGpu) {
  if (benchmarks::can_count()) GTEST_SKIP() << "the GPU is emulated";
  EXPECT_EQ(error_text([] { benchmarks::count([] {}); }), "ladder: a real GPU does not count, an emulated one does");
}

}  // namespace
}  // namespace weft::tests
