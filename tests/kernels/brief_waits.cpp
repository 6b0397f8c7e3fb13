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

#include "kernels/runtime/runtime.h"
#include "tests/support/shell.h"

// How threads wait is chosen before main(), so that each case is a process of its own.

namespace weft::tests {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The CPU time that a waiting thread takes of a pause of 100 ms, in milliseconds: the mean of 5. The pauses are long: a
/// thread that spins has its share of a busy machine in each.
double milliseconds_of_waiting() {
  constexpr int kPauses = 5;
  double sum = 0;
  for (int i = 0; i < kPauses; ++i) {
#pragma omp parallel num_threads(2)
    { asm volatile(""); }  // GCC drops a region that is empty
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sum += cpu_seconds() - before;
  }
  return 1e3 * sum / kPauses;
}

TEST(BriefWaits, InTheChild) {
  if (!std::getenv("WEFT_TEST_WAITS")) GTEST_SKIP() << "started by the test below";
  kernels::runtime(DeviceKind::cpu);
  std::printf("waiting took %.4f ms\n", milliseconds_of_waiting());
}

double wait_of_child(const std::string& environment) {
  const Outcome child =
      shell("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT WEFT_TEST_WAITS=1 WEFT_TEST_DEVICES=cpu OMP_NUM_THREADS=2 " + environment + " /proc/" +
            std::to_string(getpid()) + "/exe --gtest_filter=BriefWaits.InTheChild");
  const size_t at = child.output.find("waiting took ");
  double wait = -1;
  if (at == std::string::npos || std::sscanf(child.output.c_str() + at, "waiting took %lf ms", &wait) != 1)
    ADD_FAILURE() << child.output;
  return wait;
}

#if defined(__GNUC__) && !defined(__clang__)
TEST(BriefWaits, ThreadsSleepSoonUnlessTheUserSaysOtherwise) {
  if (omp_get_num_procs() < 2) GTEST_SKIP() << "one processor: libgomp waits briefly by itself";
  const double spinning = wait_of_child("OMP_WAIT_POLICY=active");
  EXPECT_GT(spinning, 1) << "what the user says holds";
  EXPECT_LT(wait_of_child(""), std::max(spinning / 4, 0.5));
}
#endif

}  // namespace
}  // namespace weft::tests
