// SPDX-License-Identifier: Apache-2.0
// Notes every kernel call of these tests for docs/ops.md: the kernel, its device, the dtype of its output.
#include "tests/support/rows.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "kernels/runtime/kernel_trace.h"

namespace weft::tests {
namespace {

void note(const kernels::KernelCall& call) {
  // The output of these does not show the dtype of their input: their tests note that themselves.
  for (const std::string_view other : {"compare", "argmax", "cross_entropy_forward"})
    if (call.name == other) return;
  if (call.views.empty() || !*call.views[0]) return;
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  add_row({"kernel", call.name, std::string(name(call.queue.device.kind)), std::string(name(call.views[0]->dtype)),
           test ? test->test_suite_name() : ""});
}

struct Notes : kernels::KernelObserver {
  void before(const kernels::KernelCall&) override {}
  void after(const kernels::KernelCall& call) override { note(call); }
};

class Trace : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { kernels::set_kernel_observer(&notes_); }
  void OnTestEnd(const testing::TestInfo&) override { kernels::set_kernel_observer(nullptr); }
  Notes notes_;
};

[[maybe_unused]] const bool listens = [] {
  if (std::getenv("WEFT_TEST_ROWS")) testing::UnitTest::GetInstance()->listeners().Append(new Trace);
  return true;
}();

}  // namespace
}  // namespace weft::tests
