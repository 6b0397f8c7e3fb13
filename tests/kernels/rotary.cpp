// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/rotary.h"

#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::RotaryArguments;

std::vector<double> turned(const std::vector<double>& x, const Sizes& sizes, const RotaryArguments& arguments) {
  std::vector<double> y(x.size());
  const auto half = static_cast<size_t>(sizes[3] / 2), heads = static_cast<size_t>(sizes[2]);
  for (size_t row = 0; row < x.size() / (2 * half); ++row)
    for (size_t i = 0; i < half; ++i) {
      const auto position = static_cast<double>(arguments.first + static_cast<int64_t>(row / heads) % sizes[1]);
      const double angle = (arguments.back ? -1 : 1) * position * arguments.frequencies[i];
      const double left = x[row * 2 * half + i], right = x[row * 2 * half + half + i];
      y[row * 2 * half + i] = arguments.scale * (left * std::cos(angle) - right * std::sin(angle));
      y[row * 2 * half + half + i] = arguments.scale * (right * std::cos(angle) + left * std::sin(angle));
    }
  return y;
}

RotaryArguments arguments_for(int64_t channels) {
  RotaryArguments arguments{.first = 5, .scale = 1.25};
  for (int64_t i = 0; i < channels / 2; ++i)
    arguments.frequencies[i] = std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(channels));
  return arguments;
}

// Whole heads of 16 bytes and others; more and fewer heads than a thread turns.
TEST(Rotary, TurnsPairsByTheirPosition) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Sizes& sizes : {Sizes{1, 1, 1, 2}, Sizes{2, 7, 3, 6}, Sizes{2, 5, 9, 64}, Sizes{1, 3, 4, 256}})
        for (const bool back : {false, true}) {
          RotaryArguments arguments = arguments_for(sizes[3]);
          arguments.back = back;
          const DeviceArray x(kind, dtype, sizes, uniform(count_of(sizes), dtype)), y(kind, dtype, sizes);
          kernels::rotary(queue_on(kind), y, x, arguments);
          EXPECT_TRUE(near(y.host(), turned(x.host(), sizes, arguments), tolerance(dtype, 64)))
              << dtype << ' ' << y.view();
        }
}

// A slice of a packed tensor, whose rows are no multiple of 16 bytes apart.
TEST(Rotary, TakesStrides) {
  const Sizes packed{2, 4, 5, 8}, sizes{2, 4, 3, 8};
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray whole(kind, DType::f32, packed, uniform(count_of(packed), DType::f32)),
        y(kind, DType::f32, sizes);
    kernels::View x = whole.view();
    x.sizes[2] = 3;
    const std::vector<double> all = whole.host();
    std::vector<double> part;
    for (size_t token = 0; token < 8; ++token) part.insert(part.end(), &all[token * 40], &all[token * 40] + 24);
    kernels::rotary(queue_on(kind), y, x, arguments_for(8));
    EXPECT_TRUE(near(y.host(), turned(part, sizes, arguments_for(8)), tolerance(DType::f32, 64)));
  }
}

TEST(Rotary, Refuses) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {1, 2, 1, 4}), other(kind, DType::f32, {1, 2, 1, 6});
    EXPECT_THAT(
        error_text([&] { kernels::rotary(queue_on(kind), other, x, {}); }),
        testing::HasSubstr("rotary: expected x [B,T,H,D] with an even D of at most 256 and y contiguous, of its "
                           "sizes and dtype, got f32[1,2,1,4] and f32[1,2,1,6]"));
  }
}

}  // namespace
}  // namespace weft::tests
