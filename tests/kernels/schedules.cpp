// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "kernels/kernel_trace.h"
#include "kernels/simt/simt.h"
#include "tests/support/devices.h"

// Holds every test of this folder to its rule: what runs on simt runs there in the fixed order and in a random one.

namespace weft::tests {
namespace {

class Schedules : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    fixed_ = random_ = 0;
    seconds_ = emulator::kernel_seconds();
    emulator::set_schedule_seed(0);
    kernels::set_kernel_trace(
        [](const char*, const kernels::Queue& queue, const kernels::View*, void* self) {
          if (queue.device.kind != DeviceKind::simt) return;
          auto& counts = *static_cast<Schedules*>(self);
          ++(emulator::schedule_seed() == 0 ? counts.fixed_ : counts.random_);
        },
        this);
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.failed())
      std::printf("Threads of simt run %s. Again: WEFT_SIMT_SEED=%" PRIu64 " WEFT_SIMT_THREADS=1\n",
                  emulator::schedule_seed() == 0 ? "in their fixed order" : "in a random order", random_schedule());
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    kernels::set_kernel_trace(nullptr, nullptr);
    // What tools/racecheck_cost compares.
    testing::Test::RecordProperty("simt_microseconds", static_cast<int>((emulator::kernel_seconds() - seconds_) * 1e6));
    if (test.result()->Skipped() || test.result()->Failed()) return;
    EXPECT_EQ(fixed_ > 0, random_ > 0) << "on simt, " << fixed_ << " kernels in the fixed order and " << random_
                                       << " in a random one: take the devices from test_devices()";
  }

  int fixed_ = 0, random_ = 0;
  double seconds_ = 0;
};

[[maybe_unused]] const bool installed = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new Schedules);
  return true;
}();

TEST(Schedules, SimtComesInBothOrders) {
  int cpu = 0, fixed = 0, random = 0;
  for (const DeviceKind kind : test_devices()) {
    cpu += kind == DeviceKind::cpu;
    if (kind == DeviceKind::simt) ++(emulator::schedule_seed() == 0 ? fixed : random);
  }
  EXPECT_EQ(cpu, 1);
  EXPECT_EQ(fixed, 1);
  EXPECT_EQ(random, 1);
  EXPECT_EQ(emulator::schedule_seed(), 0u);
}

}  // namespace
}  // namespace weft::tests
