// SPDX-License-Identifier: Apache-2.0
#include "tests/ladder/counts.h"

#include <gmock/gmock.h>

#include "emulator/machine/fault.h"
#include "emulator/source/simt.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {

namespace {

StepCounts counts_of(const kernels::ladder::Ladder& ladder, DeviceKind kind) {
  const auto problem = ladder.problem(ladder.counted);
  std::vector<DeviceArray> inputs;
  std::vector<kernels::View> views;
  for (const Sizes& sizes : problem.inputs) {
    inputs.emplace_back(kind, problem.dtype, sizes, uniform(count_of(sizes), problem.dtype));
    views.push_back(inputs.back());
  }
  const DeviceArray y(kind, problem.dtype, problem.output);
  StepCounts counts(1);
  for (const auto& step : kernels::ladder::steps(ladder, kind))
    counts.push_back(emulator::source::count([&] { step.run(queue_on(kind), y, views); }));
  return counts;
}

}  // namespace

void with_counts(const char* ladder, const std::function<void(const StepCounts&)>& check) {
  // A GPU does not count: its times are what the table shows there.
  for (const DeviceKind kind : device_runs())
    if (kind != DeviceKind::cpu && kind != DeviceKind::cuda && emulator::source::can_count())
      check(counts_of(kernels::ladder::find(ladder), kind));
}

namespace {

TEST(CannotCount, InABuildWithChecksOrSanitizers) {
  if (emulator::source::can_count()) {
    EXPECT_FALSE(emulator::source::access_checks());
    return;
  }
  try {
    emulator::source::count([] {});
    ADD_FAILURE() << "counted";
  } catch (const emulator::Fault& fault) {
    EXPECT_THAT(fault.text, testing::HasSubstr("count in a plain one"));
  }
}

}  // namespace
}  // namespace weft::tests
