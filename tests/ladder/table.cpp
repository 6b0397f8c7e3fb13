// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sstream>

#include "benchmarks/ladder/climb.h"
#include "benchmarks/ladder/counts.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"

namespace weft::tests {
namespace {

std::string table(const std::string& name, const benchmarks::Climb& climb) {
  std::ostringstream out;
  benchmarks::print_table(out, kernels::ladder::find(name), climb);
  return out.str();
}

TEST(Table, HasALineForEachStep) {
  if (!runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs the device cuda";
  const std::string text = table("matmul_f32", {{DeviceKind::cuda, 0}, {128, 128, 8}, {0.01, 1}});
  EXPECT_THAT(text, testing::HasSubstr("M N K = 128 128 8"));
  EXPECT_THAT(text, testing::HasSubstr(benchmarks::can_count() ? "wavefronts" : "TFLOP/s"));
  EXPECT_THAT(text, testing::HasSubstr("\n5_register_tile  "));
  EXPECT_THAT(text, testing::HasSubstr("\n10_weft  "));
}

TEST(Table, ListsTheLadders) {
  std::ostringstream out;
  benchmarks::print_list(out);
  for (const auto& ladder : kernels::ladder::all()) EXPECT_THAT(out.str(), testing::HasSubstr(str(ladder.name, " ")));
}

TEST(Table, ErrorsSayWhatIsWrong) {
  const auto error = [](DeviceKind kind, std::vector<int64_t> sizes) {
    return error_text([&] { table("matmul_f32", {{kind, 0}, std::move(sizes), {0.01, 1}}); });
  };
  EXPECT_EQ(error(DeviceKind::cpu, {}), "ladder: expected the device cuda, got cpu");
  if (runs_on(DeviceKind::cuda)) {
    EXPECT_EQ(error(DeviceKind::cuda, {64, 64}), "ladder: matmul_f32 has the sizes M N K, got 2 numbers");
    EXPECT_EQ(error(DeviceKind::cuda, {64, 0, 64}), "ladder: expected positive sizes, got 0");
  }
  EXPECT_EQ(error_text([] {
              table("matmul_f32", {{DeviceKind::cuda, 4096}, {}, {0.01, 1}});
            }),
            "ladder: there is no device cuda:4096");
}

}  // namespace
}  // namespace weft::tests
