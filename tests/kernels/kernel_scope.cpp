// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "kernels/contracts/copy.h"
#include "kernels/runtime/kernel_trace.h"
#include "tests/support/compare.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"

// Hooks around every kernel call: observers, WEFT_SYNC, WEFT_CHECK_NAN.

namespace weft::tests {
namespace {

using kernels::View;
using testing::ElementsAre;
using testing::HasSubstr;

class KernelScopeOn : public testing::TestWithParam<DeviceKind> {
 protected:
  ~KernelScopeOn() override {
    kernels::set_kernel_checks(before_);
    kernels::set_kernel_observer(nullptr);
  }
  DeviceArray filled(double value) const { return {GetParam(), DType::f32, {3, 4, 5}, std::vector<double>(60, value)}; }
  void copy(const View& y, const View& x) const { kernels::copy(queue_on(GetParam()), y, x); }

 private:
  kernels::KernelChecks before_ = kernels::kernel_checks();
};

TEST_P(KernelScopeOn, CheckNanNamesKernelOutputAndFirstIndex) {
  std::vector<double> x(60, 1);
  const DeviceArray y(GetParam(), DType::f32, {3, 4, 5});
  kernels::set_kernel_checks({.not_finite = true});
  EXPECT_EQ(error_text([&] { copy(y, filled(1)); }), "");
  x[2 * 20 + 1 * 5 + 3] = std::nan("");
  x[59] = std::numeric_limits<double>::infinity();
  const DeviceArray input(GetParam(), DType::f32, {3, 4, 5}, x);
  EXPECT_THAT(error_text([&] { copy(y, input); }),
              HasSubstr(str("copy: 2 of 60 elements of its output f32[3,4,5] on ", Device{GetParam(), 0},
                            " are NaN or infinite, the first is nan at [2,1,3]")));
  kernels::set_kernel_checks({});
  EXPECT_EQ(error_text([&] { copy(y, input); }), "");
}

TEST_P(KernelScopeOn, SynchronizesWhenAsked) {
  kernels::set_kernel_checks({.synchronize = true});
  const DeviceArray x = filled(3), y = filled(0);
  copy(y, x);
  EXPECT_EQ(y.host(), std::vector<double>(60, 3));
}

TEST_P(KernelScopeOn, AnObserverSeesNamesAndViews) {
  struct Observer : kernels::KernelObserver {
    std::vector<std::string> calls;
    std::vector<const void*> views;
    void before(const kernels::KernelCall& call) override { calls.push_back(std::string("before ") + call.name); }
    void after(const kernels::KernelCall& call) override {
      calls.push_back(std::string("after ") + call.name);
      for (const View* view : call.views) views.push_back(view->data);
    }
  } observer;
  const DeviceArray x = filled(1), y = filled(0);
  kernels::set_kernel_observer(&observer);
  copy(y, x);
  kernels::set_kernel_observer(nullptr);
  copy(y, x);
  EXPECT_THAT(observer.calls, ElementsAre("before copy", "after copy"));
  EXPECT_THAT(observer.views, ElementsAre(y.view().data, x.view().data));
}

TEST_P(KernelScopeOn, AnObserverThatOnlyCountsLeavesTheKernelOut) {
  struct Observer : kernels::KernelObserver {
    std::string calls;
    void before(const kernels::KernelCall& call) override { calls += std::string(call.name) + "( "; }
    void after(const kernels::KernelCall&) override { calls += ')'; }
    bool runs() const override { return false; }
  } observer;
  const DeviceArray x = filled(std::nan("")), y = filled(3);
  kernels::set_kernel_checks({.not_finite = true});  // nothing was written, so nothing is checked
  kernels::set_kernel_observer(&observer);
  copy(y, x);
  kernels::run_as_kernel(queue_on(GetParam()), "by hand", {}, [] { FAIL() << "it must not run"; });
  kernels::set_kernel_observer(nullptr);
  EXPECT_EQ(observer.calls, "copy( )by hand( )");
  EXPECT_EQ(y.host(), std::vector<double>(60, 3));
}

INSTANTIATE_TEST_SUITE_P(Devices, KernelScopeOn, testing::ValuesIn(test_devices()),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace weft::tests
