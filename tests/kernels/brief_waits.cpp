// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/brief_waits.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "kernels/runtime.h"
#include "tests/support/shell.h"

// How threads wait is chosen before main(), so that each case is a process of its own.

namespace weft::tests {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The least CPU time that waiting threads took of 20 pauses of 20 ms, in milliseconds.
double milliseconds_of_waiting() {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) {
#pragma omp parallel num_threads(2)
    {}
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    least = std::min(least, 1e3 * (cpu_seconds() - before));
  }
  return least;
}

TEST(BriefWaits, InTheChild) {
  if (!std::getenv("WEFT_TEST_WAITS")) GTEST_SKIP() << "started by the tests below";
  const double before = milliseconds_of_waiting();
  kernels::runtime(DeviceKind::cpu);
  std::printf("waiting took %.4f ms and then %.4f ms\n", before, milliseconds_of_waiting());
}

/// The two numbers that a child prints.
std::pair<double, double> waits_of_child(const std::string& environment) {
  const Outcome child = shell("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT WEFT_TEST_WAITS=1 " + environment + " /proc/" +
                              std::to_string(getpid()) + "/exe --gtest_filter=BriefWaits.InTheChild");
  const size_t at = child.output.find("waiting took ");
  std::pair<double, double> waits{-1, -1};
  if (at == std::string::npos ||
      std::sscanf(child.output.c_str() + at, "waiting took %lf ms and then %lf ms", &waits.first, &waits.second) != 2)
    ADD_FAILURE() << child.output;
  return waits;
}

#if defined(__GNUC__) && !defined(__clang__)
TEST(BriefWaits, ThreadsSleepSoonOnceTheCpuIsUsed) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: libgomp waits briefly by itself";
  const auto [before, after] = waits_of_child("OMP_NUM_THREADS=2");
  EXPECT_GT(before, 0.5) << "libgomp spins for milliseconds";
  EXPECT_LT(after, before / 5);
}

TEST(BriefWaits, WhatTheUserSaysHolds) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor: libgomp waits briefly by itself";
  const auto [before, after] = waits_of_child("OMP_NUM_THREADS=2 GOMP_SPINCOUNT=300000");
  EXPECT_GT(before, 0.5);
  EXPECT_GT(after, 0.5);
}
#endif

}  // namespace
}  // namespace weft::tests
