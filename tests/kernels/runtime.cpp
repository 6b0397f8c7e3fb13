// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/runtime.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/devices.h"

namespace weft::tests {
namespace {

class RuntimeOn : public testing::TestWithParam<DeviceKind> {};

TEST_P(RuntimeOn, StreamsEventsAndMemory) {
  kernels::Runtime& device = kernels::runtime(GetParam());
  constexpr size_t kBytes = 1 << 20;
  EXPECT_FALSE(device.describe(0).empty());
  size_t free_before = 0, free_after = 0, total = 0;
  void* const memory = device.allocate(0, kBytes);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % (GetParam() == DeviceKind::cpu ? 64 : 256), 0u);
  device.memory_info(0, free_before, total);
  EXPECT_LE(free_before, total);
  void* const stream = device.create_stream(0);
  void* const start = device.create_event(0, true);
  void* const stop = device.create_event(0, true);
  device.record_event(start, 0, stream);
  device.fill_bytes(0, memory, 7, kBytes, stream);
  std::vector<unsigned char> host(kBytes);
  device.copy(0, host.data(), memory, kBytes, stream);
  device.record_event(stop, 0, stream);
  device.wait_event(0, nullptr, stop);
  device.synchronize_event(stop);
  EXPECT_TRUE(device.query_event(stop));
  EXPECT_GE(device.elapsed_ms(start, stop), 0.0f);
  device.synchronize_stream(0, stream);
  device.synchronize_device(0);
  EXPECT_EQ(host, std::vector<unsigned char>(kBytes, 7));
  device.destroy_event(start);
  device.destroy_event(stop);
  device.destroy_stream(0, stream);
  device.release(0, memory);
  if (GetParam() == DeviceKind::cuda) {
    device.memory_info(0, free_after, total);
    if (emulated()) {  // a real GPU has other users
      EXPECT_EQ(free_after, free_before + kBytes);
    }
    EXPECT_EQ(device.allocate(0, total + 1), nullptr);
  }
  void* const pinned = device.allocate_pinned(1000);
  ASSERT_NE(pinned, nullptr);
  device.release_pinned(pinned);
}

INSTANTIATE_TEST_SUITE_P(Devices, RuntimeOn, testing::ValuesIn(test_devices()),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace weft::tests
