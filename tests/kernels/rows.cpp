// SPDX-License-Identifier: Apache-2.0
// Notes every kernel call of these tests for docs/ops.md: the kernel, its device, the dtype of its output.
#include "tests/support/rows.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "kernels/kernel_trace.h"

namespace weft::tests {
namespace {

void note(const char* kernel, const kernels::Queue& queue, const kernels::View* output, void*) {
  // The output of these says nothing about their input: their tests note that themselves.
  for (const std::string_view other : {"compare", "argmax", "cross_entropy_forward"})
    if (kernel == other) return;
  if (!output || !*output) return;
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  add_row({"kernel", kernel, std::string(name(queue.device.kind)), std::string(name(output->dtype)),
           test ? test->test_suite_name() : ""});
}

class Trace : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { kernels::set_kernel_trace(note, nullptr); }
  void OnTestEnd(const testing::TestInfo&) override { kernels::set_kernel_trace(nullptr, nullptr); }
};

[[maybe_unused]] const bool listens = [] {
  if (std::getenv("WEFT_TEST_ROWS")) testing::UnitTest::GetInstance()->listeners().Append(new Trace);
  return true;
}();

}  // namespace
}  // namespace weft::tests
