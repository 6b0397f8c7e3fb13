// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/cumsum.h"

#include <cmath>
#include <limits>

#include "kernels/contracts/index.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

const DType kSummed[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                         DType::i64, DType::i32, DType::u8,   DType::boolean};

/// Rows that a warp, a block and several blocks sum on the GPU, with remainders.
const Sizes kSizes[] = {{1}, {3, 1}, {2, 5, 33}, {2, 512}, {2, 513}, {1, 3000}, {2, 9001}};

std::vector<double> sums_of(const std::vector<double>& x, int64_t n, bool reverse) {
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size(); row += static_cast<size_t>(n)) {
    double sum = 0;
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) {
      const size_t at = row + (reverse ? static_cast<size_t>(n) - 1 - i : i);
      y[at] = sum += x[at];
    }
  }
  return y;
}

TEST(Cumsum, EqualsTheSumsInOrder) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kSummed)
      for (const Sizes& sizes : kSizes)
        for (const bool reverse : {false, true}) {
          const bool below_zero = dtype != DType::u8 && dtype != DType::boolean;
          const auto x = integers(count_of(sizes), below_zero ? -2 : 0, dtype == DType::boolean ? 1 : 3);
          const DType kept = is_floating(dtype) ? dtype : DType::i64;
          std::vector<double> want = sums_of(x, sizes.back(), reverse);
          for (double& value : want) value = rounded(value, kept);  // sums of integers are exact in f32
          const DeviceArray y(kind, kept, sizes);
          kernels::cumsum(queue_on(kind), y, DeviceArray(kind, dtype, sizes, x), reverse);
          EXPECT_TRUE(near(y.host(), want, {})) << dtype << ' ' << y.view() << " reverse " << reverse;
          if (!is_floating(dtype)) continue;
          const DeviceArray wide(kind, DType::f64, sizes);
          const auto fine = uniform(count_of(sizes), dtype, 0, 1);  // sums that only f64 holds
          kernels::cumsum(queue_on(kind), wide, DeviceArray(kind, dtype, sizes, fine), reverse);
          EXPECT_TRUE(near(wide.host(), sums_of(fine, sizes.back(), reverse), tolerance(DType::f64, sizes.back())))
              << dtype << ' ' << y.view();
        }
}

TEST(Cumsum, WhatIsNotFiniteReachesTheSumsBehindItAlone) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const DeviceKind kind : test_devices())
    for (const int64_t n : {40, 1000, 9001}) {
      std::vector<double> x(static_cast<size_t>(n), 1);
      x[17] = kInfinity;
      x[33] = -kInfinity;
      const DeviceArray y(kind, DType::f32, {n});
      kernels::cumsum(queue_on(kind), y, DeviceArray(kind, DType::f32, {n}, x), false);
      const auto got = y.host();
      EXPECT_EQ(got[16], 17);
      for (size_t i = 17; i < 33; ++i) EXPECT_EQ(got[i], kInfinity) << i;
      for (size_t i = 33; i < got.size(); ++i) ASSERT_TRUE(std::isnan(got[i])) << i;
    }
}

TEST(Nonzero, CoordinatesInOrder) {
  for (const DeviceKind kind : test_devices())
    for (const Sizes& sizes : {Sizes{7}, Sizes{3, 40}, Sizes{2, 3, 5, 7}, Sizes{5, 2001}}) {
      const int64_t n = count_of(sizes);
      const auto x = integers(n, 0, 1);
      const auto ends = sums_of(x, n, false);
      std::vector<double> want;
      for (int64_t i = 0; i < n; ++i) {
        if (x[static_cast<size_t>(i)] == 0) continue;
        int64_t inner = n;
        for (const int64_t size : sizes) want.push_back(static_cast<double>(i / (inner /= size) % size));
      }
      const DeviceArray mask(kind, DType::boolean, sizes, x), upto(kind, DType::i64, {n}, ends);
      const auto rank = static_cast<int64_t>(sizes.size());
      const DeviceArray y(kind, DType::i64, {static_cast<int64_t>(want.size()) / rank, rank});
      kernels::nonzero(queue_on(kind), y, mask, upto);
      EXPECT_TRUE(near(y.host(), want, {})) << mask.view();
    }
}

}  // namespace
}  // namespace weft::tests
