// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/bugs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

namespace simt = kernels::simt;
using simt::Bug;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

/// `bugs.cu:12`: where the source has the mark `// bug: name`.
std::string line_of(const std::string& name) {
  std::ifstream file(WEFT_SOURCE_DIR "/tests/simt/bugs.cu");
  int number = 1;
  for (std::string line; std::getline(file, line); ++number)
    if (line.size() > name.size() && line.ends_with("// bug: " + name)) return "bugs.cu:" + std::to_string(number);
  return "no mark " + name;
}

/// The report about a bug, with 64 ints of written memory.
std::string report(Bug bug, unsigned threads = 64) {
  const DeviceArray<int> data(std::vector<int>(64));
  return error_of([&] { simt::plant(kSimt, bug, data.data(), threads); });
}

void expect_kernel_still_runs() { EXPECT_THAT(report(Bug::none), IsEmpty()); }

TEST(Bugs, ReturnBeforeBarrier) {
  EXPECT_THAT(report(Bug::return_before_barrier),
              AllOf(HasSubstr("plant: grid (1,1,1), block (64,1,1), 64 bytes of dynamic shared memory: block (0,0,0), "
                              "thread (5,0,0): divergent barrier: it waits in __syncthreads at " +
                              line_of("return_before_barrier") + ", but 5 of 64 threads of the block have exited"),
                    HasSubstr("threads 0-4: exited")));
  emulator::source::set_schedule_seed(7);
  EXPECT_THAT(report(Bug::return_before_barrier), HasSubstr("Every thread"));
  emulator::source::set_schedule_seed(0);
  expect_kernel_still_runs();
}

TEST(Bugs, TwoBarriers) {
  EXPECT_THAT(
      report(Bug::two_barriers),
      AllOf(HasSubstr("thread (32,0,0): divergent barrier: it waits in __syncthreads at " + line_of("two_barriers") +
                      ", but 32 other threads wait in __syncthreads at bugs.cu:"),
            HasSubstr("threads 0-31: wait in __syncthreads at bugs.cu:"), HasSubstr("threads 33-63: not started")));
  expect_kernel_still_runs();
}

TEST(Bugs, HalfWarpCallsFullShuffle) {
  EXPECT_THAT(report(Bug::half_warp_calls_full_shuffle),
              AllOf(HasSubstr("block (0,0,0): deadlock: no thread can run.\n  threads 0-15: wait in __shfl_sync, mask "
                              "0xffffffff, at " +
                              line_of("half_warp_calls_full_shuffle")),
                    HasSubstr("\n  threads 16-31: wait in __syncthreads at bugs.cu:")));
  expect_kernel_still_runs();
}

TEST(Bugs, Masks) {
  EXPECT_THAT(report(Bug::mask_without_the_caller),
              HasSubstr("thread (1,0,0): __shfl_sync at " + line_of("mask_without_the_caller") +
                        ": mask 0x1 does not name the calling lane 1"));
  EXPECT_THAT(
      report(Bug::mask_names_exited_lanes),
      HasSubstr("thread (3,0,0): exits while lanes 0-2 of its warp wait for it in __syncwarp, mask 0xffffffff"));
  EXPECT_THAT(report(Bug::mask_names_missing_lanes, 40),
              HasSubstr("thread (32,0,0): __syncwarp at " + line_of("mask_names_missing_lanes") +
                        ": mask 0xffffffff names lanes 8-31, which this block does not have"));
  EXPECT_THAT(
      report(Bug::two_collectives_with_one_mask),
      HasSubstr("thread (16,0,0): divergent collective: it calls __any_sync at " +
                line_of("two_collectives_with_one_mask") + " while lanes 0-15 of its warp wait in __shfl_sync"));
  EXPECT_THAT(report(Bug::shuffle_from_outside_the_mask),
              HasSubstr("__shfl_sync: lane 0 reads lane 20, which mask 0xffff does not name"));
  EXPECT_THAT(report(Bug::barrier_against_collective), HasSubstr("divergent barrier"));
  expect_kernel_still_runs();
}

TEST(Bugs, StackOverflow) {
  EXPECT_THAT(report(Bug::stack_overflow), HasSubstr("thread (0,0,0): stack overflow at bugs.cu:"));
  EXPECT_THAT(report(Bug::huge_local_array), HasSubstr("thread (0,0,0): stack overflow at bugs.cu:"));
  std::thread([] { EXPECT_THAT(report(Bug::stack_overflow), HasSubstr("a thread has 256 KiB of stack")); }).join();
  expect_kernel_still_runs();
}

TEST(Bugs, FaultsOfTheProcessor) {
  EXPECT_THAT(report(Bug::null_pointer),
              AllOf(HasSubstr("at " + line_of("null_pointer") + ": "), HasSubstr("from a null pointer")));
  EXPECT_THAT(report(Bug::far_out_of_bounds),
              AllOf(HasSubstr("thread (0,0,0): "), HasSubstr("at " + line_of("far_out_of_bounds") + ": address 0x"),
                    HasSubstr("is device memory that is not allocated")));
  expect_kernel_still_runs();
}

#if defined(__x86_64__)
constexpr bool kDivisionByZeroIsASignal = true;
#else
constexpr bool kDivisionByZeroIsASignal = false;
#endif

TEST(Bugs, IntegerDivisionByZero) {
  if (!kDivisionByZeroIsASignal) GTEST_SKIP() << "this processor divides by 0 and goes on";
  EXPECT_THAT(report(Bug::integer_division_by_zero),
              HasSubstr("thread (0,0,0): integer division by zero at " + line_of("integer_division_by_zero")));
  expect_kernel_still_runs();
}

TEST(Bugs, MisalignedAccessesAndTraps) {
  EXPECT_THAT(report(Bug::misaligned_vector), HasSubstr("misaligned access at " + line_of("misaligned_vector")));
  EXPECT_THAT(report(Bug::trap), HasSubstr("__trap() at " + line_of("trap")));
  EXPECT_THAT(report(Bug::cp_async_to_global), AllOf(HasSubstr("cp.async at " + line_of("cp_async_to_global")),
                                                     HasSubstr("is not in the shared memory of this block")));
  EXPECT_THAT(report(Bug::cp_async_misaligned),
              AllOf(HasSubstr("cp.async at " + line_of("cp_async_misaligned") + ": global address 0x"),
                    HasSubstr("is not a multiple of 16")));
}

TEST(Bugs, TooMuchSharedMemory) {
  const DeviceArray<int> data(1);
  EXPECT_THAT(error_of([&] { simt::plant_shared(kSimt, data.data(), 227 * 1024); }), IsEmpty());
  EXPECT_THAT(error_of([&] { simt::plant_shared(kSimt, data.data(), 227 * 1024 + 1); }),
              HasSubstr("232449 bytes of dynamic shared memory: the device allows less dynamic shared memory"));
  const emulator::source::CapabilityScope ampere(80);  // an A100 has less, also of a kernel that Hopper gave more
  EXPECT_THAT(error_of([&] { simt::plant_shared(kSimt, data.data(), 163 * 1024); }), IsEmpty());
  EXPECT_THAT(error_of([&] { simt::plant_shared(kSimt, data.data(), 163 * 1024 + 1); }),
              HasSubstr("166913 bytes of dynamic shared memory: invalid argument"));
}

TEST(Bugs, OutOfBounds) {
  if (!emulator::source::access_checks()) GTEST_SKIP() << "needs a build with WEFT_SIMT_CHECK=ON: tools/test racecheck";
  EXPECT_THAT(report(Bug::one_past_the_end),
              HasSubstr("thread (63,0,0): out-of-bounds write of 4 bytes at " + line_of("one_past_the_end") +
                        ": 0 bytes past the end of a device allocation of 256 bytes"));
  EXPECT_THAT(report(Bug::one_before_the_beginning),
              HasSubstr("thread (1,0,0): out-of-bounds write of 4 bytes at " + line_of("one_before_the_beginning") +
                        ": 4 bytes before the beginning of a device allocation of 256 bytes"));
  EXPECT_THAT(report(Bug::shared_past_the_end),
              HasSubstr("out-of-bounds write of 4 bytes at " + line_of("shared_past_the_end")));
  EXPECT_THAT(report(Bug::dynamic_shared_past_the_end),
              HasSubstr("thread (16,0,0): out-of-bounds write of 4 bytes at " + line_of("dynamic_shared_past_the_end") +
                        ": byte 64 of 64 bytes of dynamic shared memory"));
  EXPECT_THAT(
      report(Bug::atomic_out_of_bounds),
      HasSubstr("thread (63,0,0): out-of-bounds atomic access of 4 bytes at " + line_of("atomic_out_of_bounds")));
  int on_the_host = 0;
  EXPECT_THAT(error_of([&] { simt::plant(kSimt, Bug::host_pointer, &on_the_host); }),
              HasSubstr("is not device memory"));
  expect_kernel_still_runs();
}

TEST(Bugs, UninitialisedReads) {
  if (!emulator::source::access_checks()) GTEST_SKIP() << "needs a build with WEFT_SIMT_CHECK=ON: tools/test racecheck";
  const DeviceArray<int> data(64);
  EXPECT_THAT(error_of([&] { simt::plant(kSimt, Bug::uninitialised_global, data.data()); }),
              HasSubstr("thread (10,0,0): reads 4 bytes that were never written at " + line_of("uninitialised_global") +
                        ": offset 40 in a device allocation of 256 bytes"));
  EXPECT_THAT(report(Bug::uninitialised_shared),
              HasSubstr("reads 4 bytes that were never written at " + line_of("uninitialised_shared") +
                        ": byte 60 of __shared__ fixed"));
  EXPECT_THAT(report(Bug::uninitialised_dynamic_shared),
              HasSubstr("reads 4 bytes that were never written at " + line_of("uninitialised_dynamic_shared") +
                        ": byte 60 of dynamic shared memory"));
}

TEST(Bugs, HostCopiesOutOfBounds) {
  const DeviceArray<int> data(64);
  std::vector<int> host(65);
  EXPECT_THAT(error_of([&] {
                kernels::runtime(DeviceKind::simt).copy(0, data.data(), host.data(), 65 * sizeof(int), nullptr);
              }),
              HasSubstr("cudaMemcpyAsync: invalid argument (cudaErrorInvalidValue)"));
}

}  // namespace
}  // namespace weft::tests
