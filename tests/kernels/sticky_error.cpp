// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/sticky_error.h"

#include <gmock/gmock.h>

#include "kernels/runtime/kernel_trace.h"

namespace weft::kernels {
namespace {

TEST(StickyError, IsNotBlamedOnTheCallThatTellsOfIt) {
  const KernelChecks before = kernel_checks();
  set_kernel_checks({});
  EXPECT_THAT(sticky_error_hint(700), testing::HasSubstr("raised by earlier work: run again with WEFT_SYNC=1"));
  EXPECT_EQ(sticky_error_hint(2), "") << "cudaErrorMemoryAllocation is the call's own";
  EXPECT_EQ(sticky_error_hint(98), "") << "so is cudaErrorInvalidDeviceFunction";
  set_kernel_checks({.synchronize = true});
  EXPECT_EQ(sticky_error_hint(700), "") << "WEFT_SYNC=1 names the kernel";
  set_kernel_checks(before);
}

}  // namespace
}  // namespace weft::kernels
