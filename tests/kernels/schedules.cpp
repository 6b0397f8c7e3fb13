// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "emulator/source/simt.h"
#include "tests/support/devices.h"

// Enforces a rule for every test of this folder: on simt it runs in the fixed order and in a random one.

namespace weft::tests {
namespace {

class Schedules : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    emulator::source::set_schedule_seed(0);
    before_ = emulator::source::usage();
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::printf("Threads of simt run %s. Again: WEFT_SIMT_SEED=%" PRIu64 " WEFT_SIMT_THREADS=1\n",
                  emulator::source::schedule_seed() == 0 ? "in their fixed order" : "in a random order",
                  random_schedule());
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    const emulator::source::Usage after = emulator::source::usage();
    if (test.result()->Skipped() || test.result()->Failed()) return;
    const int64_t fixed = after.fixed_launches - before_.fixed_launches;
    const int64_t random = after.random_launches - before_.random_launches;
    EXPECT_EQ(fixed > 0, random > 0) << "on simt, " << fixed << " kernels in the fixed order and " << random
                                     << " in a random one: take the devices from device_runs()";
  }

  emulator::source::Usage before_{};
};

[[maybe_unused]] const bool installed = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Schedules);
  return true;
}();

TEST(Schedules, SimtComesInBothOrders) {
  int fixed = 0, random = 0;
  for (const DeviceKind kind : device_runs())
    if (kind == DeviceKind::simt) ++(emulator::source::schedule_seed() == 0 ? fixed : random);
  EXPECT_EQ(fixed, runs_on(DeviceKind::simt) ? 1 : 0);
  EXPECT_EQ(random, runs_on(DeviceKind::simt) ? 1 : 0);
  EXPECT_EQ(emulator::source::schedule_seed(), 0u);
}

}  // namespace
}  // namespace weft::tests
