// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

const DType kSorted[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                         DType::i64, DType::i32, DType::u8,   DType::boolean};

/// The order that the contract asks for, by the library's stable sort.
std::vector<int64_t> order_of(const double* row, int64_t n, bool descending) {
  const auto less = [](double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); };
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return descending ? less(row[b], row[a]) : less(row[a], row[b]); });
  return order;
}

void expect_sorted(DeviceKind kind, DType dtype, const Sizes& sizes, const std::vector<double>& x, int64_t k,
                   bool descending) {
  const int64_t n = sizes.back(), rows = count_of(sizes) / n;
  Sizes kept = sizes;
  kept.back() = k;
  const DeviceArray input(kind, dtype, sizes, x), values(kind, dtype, kept), indices(kind, DType::i64, kept);
  kernels::sort(queue_on(kind), values, indices, input, descending);
  const auto got = values.host(), places = indices.host();
  for (int64_t row = 0; row < rows; ++row) {
    const auto order = order_of(&x[static_cast<size_t>(row * n)], n, descending);
    for (int64_t i = 0; i < k; ++i) {
      const auto at = static_cast<size_t>(row * k + i);
      const double want = x[static_cast<size_t>(row * n + order[static_cast<size_t>(i)])];
      ASSERT_EQ(places[at], static_cast<double>(order[static_cast<size_t>(i)]))
          << dtype << ' ' << input.view() << ", first " << k << ", descending " << descending << ", row " << row
          << ", place " << i;
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got[at])
                                   : got[at] == want && std::signbit(got[at]) == std::signbit(want))
          << got[at] << " instead of " << want;
    }
  }
}

TEST(Sort, IsStableInEveryDtype) {
  // Rows of a part of a tile, of a whole one and of several with a remainder; many ties.
  const Sizes all[] = {{1}, {3, 2}, {2, 2, 37}, {5, 64}, {2, 2048}, {1, 2049}, {2, 5000}};
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kSorted)
      for (const Sizes& sizes : all)
        for (const bool descending : {false, true}) {
          const bool below_zero = dtype != DType::u8 && dtype != DType::boolean;
          const auto x = integers(count_of(sizes), below_zero ? -20 : 0, dtype == DType::boolean ? 1 : 20);
          expect_sorted(kind, dtype, sizes, x, sizes.back(), descending);
          expect_sorted(kind, dtype, sizes, x, pick(0, sizes.back()), descending);
        }
}

TEST(Sort, TheFirstOfManyTiles) {
  for (const DeviceKind kind : test_devices())
    for (const int64_t k : {1, 9, 2048, 2500})
      expect_sorted(kind, DType::f32, {1, 11000}, integers(11000, -3000, 3000), k, true);
}

TEST(Sort, NanIsTheLargestAndZeroHasNoSign) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const bool descending : {false, true}) {
        std::vector<double> x{0, kNan, -0.0, kInfinity, -1, -kNan, -kInfinity, 0, 3, kNan, -0.0, -2, kInfinity};
        expect_sorted(kind, dtype, {static_cast<int64_t>(x.size())}, x, static_cast<int64_t>(x.size()), descending);
        x.resize(2100, kNan);  // more NaN than a tile has places left
        expect_sorted(kind, dtype, {2100}, x, 2100, descending);
      }
}

TEST(Sort, WholeNumbersAtTheEndsOfTheirRange) {
  // Numbers that f64, the tests' own, holds.
  const std::vector<double> x{0x7fffffff, -2147483648.0, 0, -1, 0x7fffffff, 1};
  const std::vector<double> wide{-9223372036854775808.0, 4611686018427387904.0, -1, 0, 9007199254740992.0};
  for (const DeviceKind kind : test_devices())
    for (const bool descending : {false, true}) {
      expect_sorted(kind, DType::i32, {6}, x, 6, descending);
      expect_sorted(kind, DType::i64, {5}, wide, 5, descending);
      expect_sorted(kind, DType::u8, {4}, {255, 0, 128, 127}, 4, descending);
    }
}

}  // namespace
}  // namespace weft::tests
