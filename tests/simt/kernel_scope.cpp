// SPDX-License-Identifier: Apache-2.0
#define WEFT_DEVICE simt
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "emulator/source/census.h"
#include "kernels/kernel.h"
#include "kernels/kernel_trace.h"
#include "tests/simt/basics.h"
#include "tests/simt/device_array.h"
#include "tests/support/devices.h"

// Hooks around every kernel call: trace, WEFT_SYNC, WEFT_CHECK_NAN.

namespace weft::tests {
namespace {

using kernels::Queue;
using kernels::View;
using testing::HasSubstr;
using testing::IsEmpty;

const kernels::Kernel<void(const Queue&, const View&, const View&, float)> scale{"scale", nullptr,
                                                                                 &kernels::simt::scale, nullptr};

struct RestoreChecks {
  kernels::KernelChecks before = kernels::kernel_checks();
  ~RestoreChecks() { kernels::set_kernel_checks(before); }
};

TEST(KernelScope, CheckNanNamesKernelOutputAndFirstIndex) {
  const RestoreChecks restore;
  std::vector<float> x(60, 1.0f);
  const DeviceArray<float> y(x.size());
  View output = View::dense(y.data(), DType::f32, {3, 4, 5});
  {
    const DeviceArray<float> input(x);
    kernels::set_kernel_checks({.not_finite = true});
    EXPECT_THAT(error_of([&] { scale(kSimt, output, input.view(), 2.0f); }), IsEmpty());
  }
  x[2 * 20 + 1 * 5 + 3] = std::numeric_limits<float>::quiet_NaN();
  x[59] = std::numeric_limits<float>::infinity();
  const DeviceArray<float> input(x);
  EXPECT_THAT(
      error_of([&] { scale(kSimt, output, input.view(), 2.0f); }),
      HasSubstr("scale: 2 of 60 elements of its output f32[3,4,5] on simt are NaN or infinite, the first is nan "
                "at [2,1,3]"));
  kernels::set_kernel_checks({});
  EXPECT_THAT(error_of([&] { scale(kSimt, output, input.view(), 2.0f); }), IsEmpty());
}

TEST(KernelScope, SynchronizesWhenAsked) {
  const RestoreChecks restore;
  kernels::set_kernel_checks({.synchronize = true});
  const DeviceArray<float> x(std::vector<float>(8, 1.0f)), y(8);
  EXPECT_THAT(error_of([&] { scale(kSimt, y.view(), x.view(), 2.0f); }), IsEmpty());
}

TEST(KernelScope, ObserverSeesNameAndViews) {
  struct Observer : kernels::KernelObserver {
    std::vector<std::string> calls;
    std::vector<const void*> views;
    void before(const kernels::KernelCall& call) override { calls.push_back(std::string("before ") + call.name); }
    void after(const kernels::KernelCall& call) override {
      calls.push_back(std::string("after ") + call.name);
      for (const View* view : call.views) views.push_back(view->data);
    }
  } observer;
  const DeviceArray<float> x(std::vector<float>(8, 1.0f)), y(8);
  kernels::set_kernel_observer(&observer);
  scale(kSimt, y.view(), x.view(), 2.0f);
  kernels::set_kernel_observer(nullptr);
  scale(kSimt, y.view(), x.view(), 2.0f);
  EXPECT_THAT(observer.calls, testing::ElementsAre("before scale", "after scale"));
  EXPECT_THAT(observer.views, testing::ElementsAre(y.data(), x.data()));
}

TEST(KernelScope, AnObserverThatOnlyCountsLeavesTheKernelOut) {
  const RestoreChecks restore;
  struct Observer : kernels::KernelObserver {
    std::string calls;
    void before(const kernels::KernelCall& call) override { calls += std::string(call.name) + '(' + ' '; }
    void after(const kernels::KernelCall&) override { calls += ')'; }
    bool runs() const override { return false; }
  } observer;
  const DeviceArray<float> x(std::vector<float>(8, NAN)), y(std::vector<float>(8, 3.0f));
  kernels::set_kernel_checks({.not_finite = true});  // nothing was written, so nothing is checked
  kernels::set_kernel_observer(&observer);
  scale(kSimt, y.view(), x.view(), 2.0f);
  kernels::run_as_kernel(kSimt, "by hand", {}, [] { FAIL() << "it must not run"; });
  kernels::set_kernel_observer(nullptr);
  EXPECT_EQ(observer.calls, "scale( )by hand( )");
  EXPECT_EQ(y.host(), std::vector<float>(8, 3.0f));
}

TEST(Runtime, StreamsEventsAndMemory) {
  for (const DeviceKind kind : test_devices()) {
    kernels::Runtime& device = kernels::runtime(kind);
    if (kind != DeviceKind::cuda) {
      EXPECT_EQ(device.device_count(), 1);
    }
    EXPECT_FALSE(device.describe(0).empty());
    size_t free_before = 0, free_after = 0, total = 0;
    void* const memory = device.allocate(0, 1 << 20);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % (kind == DeviceKind::cpu ? 64 : 256), 0u);
    device.memory_info(0, free_before, total);
    EXPECT_LE(free_before, total);
    void* const stream = device.create_stream(0);
    void* const start = device.create_event(0, true);
    void* const stop = device.create_event(0, true);
    device.record_event(start, 0, stream);
    device.fill_bytes(0, memory, 7, 1 << 20, stream);
    std::vector<unsigned char> host(1 << 20);
    device.copy(0, host.data(), memory, host.size(), stream);
    device.record_event(stop, 0, stream);
    device.wait_event(0, nullptr, stop);
    device.synchronize_event(stop);
    EXPECT_TRUE(device.query_event(stop));
    EXPECT_GE(device.elapsed_ms(start, stop), 0.0f);
    device.synchronize_stream(0, stream);
    device.synchronize_device(0);
    EXPECT_EQ(host, std::vector<unsigned char>(1 << 20, 7));
    device.destroy_event(start);
    device.destroy_event(stop);
    device.destroy_stream(0, stream);
    device.release(0, memory);
    if (kind == DeviceKind::simt) {
      device.memory_info(0, free_after, total);
      EXPECT_EQ(free_after, free_before + (1 << 20));
      EXPECT_EQ(device.allocate(0, total + 1), nullptr);
    }
    void* const pinned = device.allocate_pinned(1000);
    ASSERT_NE(pinned, nullptr);
    device.release_pinned(pinned);
  }
}

// A watchdog's or a loader's thread has set no device. On a node of four GPUs its calls must not make contexts on
// GPU 0 beside that of the rank which works there.
TEST(Runtime, ThreadsThatNameNoDeviceTakeTheOneInUse) {
  kernels::Runtime& device = kernels::runtime(DeviceKind::simt);
  void* const event = device.create_event(0, true);
  device.record_event(event, 0, nullptr);
  const auto in_a_new_thread = [&](auto&& call) {
    const int64_t before = emulator::source::calls_without_device();
    std::thread(call).join();
    EXPECT_EQ(emulator::source::calls_without_device(), before);
  };
  in_a_new_thread([&] { device.query_event(event); });
  in_a_new_thread([&] { device.synchronize_event(event); });
  in_a_new_thread([&] { device.elapsed_ms(event, event); });
  in_a_new_thread([&] { device.release_pinned(device.allocate_pinned(100)); });
  void* const pinned = device.allocate_pinned(100);
  in_a_new_thread([&] { device.release_pinned(pinned); });
  void* const stream = device.create_stream(0);
  in_a_new_thread([&] { device.destroy_stream(0, stream); });
  in_a_new_thread([&] { device.destroy_event(event); });
}

}  // namespace
}  // namespace weft::tests
