// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/measure.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace bench {
namespace {

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(Measure, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(Measure, UnitsAreRatesOrTimes) {
  EXPECT_DOUBLE_EQ(in_unit("images/s", 0.5, 64), 128);
  EXPECT_DOUBLE_EQ(in_unit("GFLOP/s", 0.5, 2e9), 4);
  EXPECT_DOUBLE_EQ(in_unit("TFLOP/s", 0.5, 2e12), 4);
  EXPECT_DOUBLE_EQ(in_unit("GB/s", 2, 4e9), 2);
  EXPECT_DOUBLE_EQ(in_unit("ms", 0.5, 1), 500);
  EXPECT_DOUBLE_EQ(in_unit("us", 0.5, 1), 5e5);
  EXPECT_DOUBLE_EQ(in_unit("ns", 0.5, 1000), 5e5);
  EXPECT_THROW(in_unit("furlongs", 1, 1), std::invalid_argument);
}

TEST(Measure, OneStepTakesItsTime) {
  int steps = 0;
  const Work work{[&] {
    ++steps;
    sleep_ms(5);
  }};
  const double seconds = seconds_per_step(work, {.seconds = 0.06, .repetitions = 3});
  EXPECT_GE(seconds, 0.005);
  EXPECT_GE(steps, 3 * 1 + 2);  // every repetition one step at least, after warming
}

TEST(Measure, WhatComesBeforeIsNotCounted) {
  int before = 0, steps = 0, waits = 0;
  const Work work{[&] { ++steps; }, 1,
                  [&] {
                    ++before;
                    sleep_ms(200);
                  },
                  [&] { ++waits; }};
  EXPECT_LT(seconds_per_step(work, {.seconds = 1e-9, .repetitions = 1}), 0.1);
  EXPECT_EQ(before, steps);
  EXPECT_EQ(waits, 2 * steps);  // ahead of the clock's start and of its end
}

TEST(Measure, WithoutSecondsTheFirstStepIsTheOnlyOne) {
  int steps = 0;
  const Work work{[&] {
    ++steps;
    sleep_ms(5);
  }};
  EXPECT_GE(seconds_per_step(work, {.seconds = 0}), 0.005);
  EXPECT_EQ(steps, 1);
}

TEST(Measure, WaitingForTheDeviceIsCounted) {
  const Work work{[] {}, 1, {}, [] { sleep_ms(5); }};
  EXPECT_GE(seconds_per_step(work, {.seconds = 0, .repetitions = 1}), 0.005);
}

}  // namespace
}  // namespace bench
