// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "kernels/contracts/conv2d.h"
#include "kernels/contracts/matmul.h"
#include "tests/support/device_array.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"
#include "tests/support/shell.h"

// bf16 and f16 on a processor without such instructions, which WEFT_CPU=avx2 makes of any other in a child.

namespace weft::tests {
namespace {

using kernels::View;

constexpr DeviceKind kCpu = DeviceKind::cpu;

/// The least of five times of a convolution that Winograd's algorithm does not take, forward and backward.
double milliseconds_of_conv2d(DType dtype) {
  const DeviceArray x(kCpu, dtype, {4, 14, 14, 64}, uniform(4 * 14 * 14 * 64, dtype));
  const DeviceArray w(kCpu, dtype, {64, 3, 3, 64}, uniform(64 * 9 * 64, dtype)), y(kCpu, dtype, {4, 7, 7, 64});
  const kernels::Conv2dArguments arguments{.stride = {2, 2}, .padding = {1, 1}};
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const clock_t start = std::clock();  // time of the processor: other programs do not count
    kernels::conv2d_forward(queue_on(kCpu), y, x, w, View::none(), arguments);
    kernels::conv2d_backward_input(queue_on(kCpu), x, y, w, View::none(), arguments);
    kernels::conv2d_backward_weight(queue_on(kCpu), w, y, x, arguments);
    least = std::min(least, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

TEST(Bf16InF32, InTheChild) {
  if (!std::getenv("WEFT_TEST_BF16")) GTEST_SKIP() << "started by the tests below";
  const DeviceArray a(kCpu, DType::bf16, {1, 8, 8}), y(kCpu, DType::bf16, {1, 8, 8});
  kernels::matmul(queue_on(kCpu), y, a, a, View::none(), {});
  std::printf("conv2d took %.4f ms in f32, %.4f in bf16, %.4f in f16\n", milliseconds_of_conv2d(DType::f32),
              milliseconds_of_conv2d(DType::bf16), milliseconds_of_conv2d(DType::f16));
}

TEST(Bf16InF32, IsAboutAsFastAsF32AndSaysSoOnce) {
  const Outcome child = shell("env WEFT_TEST_DEVICES=cpu WEFT_CPU=avx2 WEFT_TEST_BF16=1 OMP_NUM_THREADS=1 /proc/" + std::to_string(getpid()) +
                              "/exe --gtest_filter=Bf16InF32.InTheChild");
  const std::string note =
      "weft: bf16 products and convolutions on this CPU are computed in f32: it has no bf16 instructions, or this "
      "build "
      "no oneDNN. bf16 saves memory here and no time\n";
  const size_t first = child.output.find(note);
  EXPECT_NE(first, std::string::npos) << child.output;
  EXPECT_EQ(child.output.find(note, first + 1), std::string::npos) << "once";
  const size_t at = child.output.find("conv2d took ");
  ASSERT_NE(at, std::string::npos) << child.output;
  double f32 = 0, bf16 = 0, f16 = 0;
  ASSERT_EQ(
      std::sscanf(child.output.c_str() + at, "conv2d took %lf ms in f32, %lf in bf16, %lf in f16", &f32, &bf16, &f16),
      3);
  EXPECT_LT(bf16, 4 * f32) << child.output;  // the loops took 40 times as long
  EXPECT_LT(f16, 4 * f32) << child.output;
}

}  // namespace
}  // namespace weft::tests
