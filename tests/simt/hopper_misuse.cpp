// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include "tests/simt/hopper_misuse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/cuda/capability.cuh"
#include "tests/simt/device_array.h"

namespace weft::tests {
namespace {

namespace simt = kernels::simt;
using simt::Misuse;
using testing::HasSubstr;

std::string report(Misuse misuse) {
  const DeviceArray<uint8_t> data(std::vector<uint8_t>(4096));
  auto tensor = std::make_unique<DeviceArray<uint8_t>>(std::vector<uint8_t>(4096));
  const simt::TensorMap map =
      simt::tiled_map("test", {tensor->data(), DType::bf16, 2, {64, 32}, {128}, {64, 8}, simt::Swizzle::bytes128});
  if (misuse == Misuse::map_of_freed_memory) tensor.reset();
  return error_of([&] { simt::misuse(kSimt, misuse, data.data(), map); });
}

struct Case {
  Misuse misuse;
  const char* name;
  const char* says;
  const char* checked = nullptr;  ///< the checked build's report instead
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

constexpr Case kCases[] = {
    {Misuse::releases_more_registers, "releases_more_registers", "to 48 registers per thread from 40"},
    {Misuse::acquires_fewer_registers, "acquires_fewer_registers", "to 232 registers per thread from 248"},
    {Misuse::barrier_zero, "barrier_zero", "barrier 0, expected 1 to 15"},
    {Misuse::barrier_of_two_sizes, "barrier_of_two_sizes",
     "barrier 3 of 128 threads, but of 96 at hopper_misuse_sm90.cu:"},
    {Misuse::waits_without_arriving, "waits_without_arriving", "this thread has not arrived"},
    {Misuse::arrives_twice_at_cluster, "arrives_twice_at_cluster", "this thread has arrived and not waited"},
    {Misuse::mbarrier_not_made, "mbarrier_not_made", "mbarrier_init has not run, or its 8 bytes were written over"},
    {Misuse::mbarrier_written_over, "mbarrier_written_over",
     "mbarrier_init has not run, or its 8 bytes were written over"},
    {Misuse::no_such_parity, "no_such_parity", "parity 2, expected 0 or 1"},
    {Misuse::bulk_load_misaligned, "bulk_load_misaligned", "all three are multiples of 16"},
    {Misuse::wrong_count_of_coordinates, "wrong_count_of_coordinates",
     "3 coordinates for a tensor map of 2 dimensions"},
    {Misuse::map_of_freed_memory, "map_of_freed_memory",
     "its tensor map leads out of bounds: ", "out-of-bounds read of 128 bytes at hopper_misuse_sm90.cu:"},
    {Misuse::load_never_waited_for, "load_never_waited_for", "is under way to its shared memory: no thread has waited"},
    {Misuse::two_loads_to_one_place, "two_loads_to_one_place", "is still under way to it",
     "No thread has waited for the copy."},
    {Misuse::sums_changed_without_fence, "sums_changed_without_fence",
     "its sums were changed since the last wgmma_wait: wgmma_fence() must come between"},
    {Misuse::sums_written_before_wait, "sums_written_before_wait", "were written before the wgmma_wait at"},
    {Misuse::wgmma_never_waited_for, "wgmma_never_waited_for",
     "exits with a wgmma that it never waited for, issued at"},
    {Misuse::operand_out_of_bounds, "operand_out_of_bounds", "beyond the block's dynamic shared memory"},
    {Misuse::operand_inside_a_pattern, "operand_inside_a_pattern",
     "not in the first line of the pattern of a 128-byte swizzle, which begins at multiples of 1024"},
    {Misuse::registers_without_fence, "registers_without_fence",
     "between what writes registers and the wgmma that reads them"},
};

class Misuses : public testing::TestWithParam<Case> {};

TEST_P(Misuses, AreReported) {
  const bool differs = emulator::source::access_checks() && GetParam().checked;
  EXPECT_THAT(report(GetParam().misuse), HasSubstr(differs ? GetParam().checked : GetParam().says));
  EXPECT_EQ(report(Misuse::none), "");
}

INSTANTIATE_TEST_SUITE_P(Simt, Misuses, testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Capability, IsNinetyUnlessATestSaysOtherwise) {
  EXPECT_EQ(simt::compute_capability(kSimt), emulator::source::device_capability());
  for (const int capability : {80, 90}) {
    const emulator::source::CapabilityScope scope(capability);
    EXPECT_EQ(simt::compute_capability(kSimt), capability);
    EXPECT_EQ(simt::has_wgmma(kSimt), capability == 90);
  }
}

}  // namespace
}  // namespace weft::tests
