// SPDX-License-Identifier: Apache-2.0
#include "kernels/allocator.h"

#include <gtest/gtest.h>

#include "kernels/runtime.h"
#include "kernels/simt/census.h"

// What the caching allocator asks of a device's runtime, counted on the emulated one.

namespace weft::tests {
namespace {

TEST(AllocatorOnADevice, AUseOnAnotherStreamTakesOneEventHoweverOften) {
  kernels::Runtime& device = kernels::runtime(DeviceKind::simt);
  kernels::CachingAllocator& allocator = kernels::CachingAllocator::of({DeviceKind::simt, 0});
  void *const one = device.create_stream(0), *const two = device.create_stream(0);
  kernels::Block* const bucket = allocator.allocate(1000, nullptr, "bucket");
  const int64_t before = emulator::live_events();
  for (int step = 0; step < 50; ++step) allocator.record_stream(bucket, one);
  EXPECT_EQ(emulator::live_events(), before + 1);
  allocator.record_stream(bucket, two);
  EXPECT_EQ(emulator::live_events(), before + 2);
  allocator.record_stream(bucket, nullptr);  // its own
  EXPECT_EQ(emulator::live_events(), before + 2);
  allocator.free(bucket);
  allocator.free(allocator.allocate(1, nullptr, "next"));  // asks whether the uses are over
  EXPECT_EQ(emulator::live_events(), before);
  device.destroy_stream(0, one);
  device.destroy_stream(0, two);
}

}  // namespace
}  // namespace weft::tests
