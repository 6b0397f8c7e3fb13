// SPDX-License-Identifier: Apache-2.0
// A program without the flags of apps/support starts itself again under weft-emulate (transcript emulated.t: train_image).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "core/choose_device.h"

namespace weft::tests {
namespace {

TEST(EmulatedDeviceDeathTest, ChooseDeviceStartsAnyProgramAgain) {
  if (!WEFT_RUNS_EMULATED) GTEST_SKIP() << "needs weft-emulate, and PTX and a shared CUDA runtime in this build";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::cerr << describe(choose_device("emulated:l4"));
        std::exit(7);
      },
      testing::ExitedWithCode(7), "cuda:0 \\(NVIDIA L4");
}

}  // namespace
}  // namespace weft::tests
