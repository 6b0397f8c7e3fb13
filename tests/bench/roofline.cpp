// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "benchmarks/roofline/chip.h"

namespace weft::tests {
namespace {

using benchmarks::Bound;
using benchmarks::Ceiling;
using benchmarks::Chip;
using benchmarks::Floor;
using benchmarks::floor_of;

TEST(Roofline, TheLongestOfThreeTimesIsTheFloor) {
  constexpr Chip chip{"test", 1e12, 100e12, 10e12, 0.5e12, 80e12};
  const auto floor = [&](kernels::KernelCost cost, Ceiling ceiling) { return floor_of(cost, chip, ceiling); };
  const Floor memory = floor({.bytes = 1'000'000}, Ceiling::data_sheet);
  EXPECT_DOUBLE_EQ(memory.seconds, 1e-6);
  EXPECT_EQ(memory.bound, Bound::memory);
  EXPECT_DOUBLE_EQ(floor({.bytes = 1'000'000}, Ceiling::measured).seconds, 2e-6);
  const kernels::KernelCost product{.bytes = 1, .flop = 1e9, .product = DType::bf16};
  EXPECT_DOUBLE_EQ(floor(product, Ceiling::data_sheet).seconds, 1e-5);
  EXPECT_EQ(floor(product, Ceiling::data_sheet).bound, Bound::product);
  EXPECT_DOUBLE_EQ(floor(product, Ceiling::measured).seconds, 1e9 / 80e12);
  EXPECT_DOUBLE_EQ(floor({.flop = 1e9, .product = DType::f32}, Ceiling::measured).seconds, 1e-4);
  EXPECT_DOUBLE_EQ(floor({.bytes = 1, .arithmetic = 1e9}, Ceiling::data_sheet).seconds, 1e-4);
  EXPECT_EQ(floor({.bytes = 1, .arithmetic = 1e9}, Ceiling::data_sheet).bound, Bound::arithmetic);
}

}  // namespace
}  // namespace weft::tests
