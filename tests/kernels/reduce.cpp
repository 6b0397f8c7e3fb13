// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/reduce.h"

#include <algorithm>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/rows.h"
#include "tests/support/strided.h"

namespace weft::tests {
namespace {

using kernels::Reduce;

struct Outcome {
  std::vector<double> values;
  int64_t count;  ///< terms of one result
};

/// Reduces row-major x over the dimensions of `mask`.
Outcome reference(Reduce f, const std::vector<double>& x, const Sizes& sizes, unsigned mask, Sizes& reduced) {
  reduced = sizes;
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (mask >> d & 1) count *= sizes[d], reduced[d] = 1;
  const bool extreme = f == Reduce::max || f == Reduce::min;
  const double start = !extreme ? f == Reduce::prod : f == Reduce::max ? -INFINITY : INFINITY;
  std::vector<double> y(static_cast<size_t>(count_of(reduced)), start);
  for (size_t i = 0; i < x.size(); ++i) {
    size_t rest = i, at = 0, stride = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      const size_t position = rest % static_cast<size_t>(sizes[d]);
      rest /= static_cast<size_t>(sizes[d]);
      if (reduced[d] != 1) at += position * stride;
      stride *= static_cast<size_t>(reduced[d]);
    }
    if (f == Reduce::max)
      y[at] = std::max(y[at], x[i]);
    else if (f == Reduce::min)
      y[at] = std::min(y[at], x[i]);
    else if (f == Reduce::prod)
      y[at] *= x[i];
    else
      y[at] += f == Reduce::sum_squares || f == Reduce::norm ? x[i] * x[i] : x[i];
  }
  for (double& v : y) {
    if (f == Reduce::mean) v /= static_cast<double>(count);
    if (f == Reduce::norm) v = std::sqrt(v);
  }
  return {y, count};
}

/// All functions of positive numbers, so that no sum cancels: the error is relative to the result.
void check(DeviceKind kind, DType dtype, const Sizes& sizes, unsigned mask, Layout layout) {
  const int64_t memory = memory_for(sizes);
  const auto values = uniform(memory, dtype, 0.25, 1);
  const DeviceArray array(kind, dtype, {memory}, values);
  const Strided in = strided(array, sizes, layout);
  std::vector<double> x;
  for (size_t i = 0; i < in.places.size(); ++i) x.push_back(in.at(values, i));
  for (int f = 0; f <= static_cast<int>(Reduce::norm); ++f) {
    SCOPED_TRACE(
        str("function ", f, " dims ", mask, " of ", in.view, " layout ", static_cast<int>(layout), " on ", name(kind)));
    Sizes reduced;
    const Outcome want = reference(static_cast<Reduce>(f), x, sizes, mask, reduced);
    for (const DType out : {dtype, DType::f32}) {
      if (dtype == DType::f64 && out == DType::f32) continue;
      const DeviceArray y(kind, out, reduced);
      kernels::reduce(queue_on(kind), static_cast<Reduce>(f), y, in.view);
      EXPECT_TRUE(near(y.host(), want.values, tolerance(out, want.count)));
    }
  }
}

// Factors of 2, 1/2 and -1 among ones: every order gives the same bits.
TEST(Reduce, Products) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32})
      for (const Sizes& sizes : {Sizes{7, 300}, Sizes{300, 7}, Sizes{3, 40'000}, Sizes{40'000, 3}, Sizes{2, 9, 3, 8}})
        for (unsigned mask = 1; mask < 1u << sizes.size(); ++mask) {
          std::vector<double> x(static_cast<size_t>(count_of(sizes)), 1);
          for (size_t i = 0; i < x.size(); ++i)
            if (i % 97 == 3)
              x[i] = i / 97 % 2                          ? -1
                     : i / 194 % 2 && is_floating(dtype) ? 0.5
                     : i / 194 < 4 || is_floating(dtype) ? 2
                                                         : 1;
          Sizes reduced;
          const Outcome want = reference(Reduce::prod, x, sizes, mask, reduced);
          const DeviceArray y(kind, dtype, reduced);
          kernels::reduce(queue_on(kind), Reduce::prod, y, DeviceArray(kind, dtype, sizes, x));
          if (std::ranges::any_of(want.values, [](double v) { return std::abs(v) > 6e4 || std::abs(v) < 1e-4; }))
            continue;
          EXPECT_EQ(y.host(), want.values)
              << dtype << " dims " << mask << " of " << sizes.size() << " on " << name(kind);
        }
  const DeviceArray nothing(DeviceKind::cpu, DType::f32, {0, 2}, {}), columns(DeviceKind::cpu, DType::f32, {1, 2});
  kernels::reduce(queue_on(DeviceKind::cpu), Reduce::prod, columns, nothing);
  EXPECT_EQ(columns.host(), (std::vector<double>{1, 1}));
}

TEST(Reduce, EveryFunctionOverEveryDimensions) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (unsigned mask = 0; mask < 8; ++mask)
        for (const Layout layout : {Layout::dense, Layout::permuted, Layout::columns})
          check(kind, dtype, {pick(1, 6), pick(1, 40), pick(1, 40)}, mask, layout);
}

/// Rows and columns of one block and of several, dimensions that join, and nothing.
TEST(Reduce, LongRowsAndColumns) {
  const struct {
    Sizes sizes;
    unsigned mask;
  } cases[] = {{{1}, 1},          {{300}, 1},        {{9000}, 1},    {{700, 40}, 1}, {{5, 96}, 2}, {{3, 2500}, 2},
               {{2, 9, 3, 8}, 7}, {{4, 5, 6, 8}, 6}, {{4, 5, 6}, 5}, {{4, 5, 6}, 2}, {{0, 3}, 2}};
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const auto& [sizes, mask] : cases) check(kind, dtype, sizes, mask, Layout::dense);
}

TEST(Reduce, LongSums) {
  for (const DeviceKind kind : test_devices()) {
    const int64_t n = kind == DeviceKind::cpu ? 1000003 : 70001;
    const auto x = uniform(n, DType::f32, 0, 1);
    double sum = 0;
    for (const double v : x) sum += v;
    const DeviceArray array(kind, DType::f32, {n}, x), y(kind, DType::f32, {1});
    kernels::reduce(queue_on(kind), Reduce::sum, y, array);
    EXPECT_TRUE(near(y.host(), {sum}, tolerance(DType::f32, 64)));  // blocked sums stay far below sqrt(n)
  }
}

// Eight numbers at most are added in f32 before they go on in f64.
TEST(Reduce, TheMeanOfLargeNumbersOnTheCpuIsFinite) {
  const DeviceArray y(DeviceKind::cpu, DType::f32, {1});
  for (const int64_t n : {512, 519}) {
    const DeviceArray x(DeviceKind::cpu, DType::f32, {n}, std::vector<double>(static_cast<size_t>(n), 0x1p124));
    kernels::reduce(queue_on(DeviceKind::cpu), Reduce::mean, y, x);
    EXPECT_EQ(y.host()[0], 0x1p124);
  }
}

TEST(Reduce, ColumnsOfManyRows) {
  for (const DeviceKind kind : test_devices()) {
    const int64_t M = kind == DeviceKind::cpu ? 20011 : 3001, C = 10;
    const auto x = uniform(M * C, DType::f32, 0, 1);
    Sizes reduced;
    const Outcome want = reference(Reduce::sum, x, {M, C}, 1, reduced);
    const DeviceArray y(kind, DType::f32, {1, C});
    kernels::reduce(queue_on(kind), Reduce::sum, y, DeviceArray(kind, DType::f32, {M, C}, x));
    EXPECT_TRUE(near(y.host(), want.values, tolerance(DType::f32, M)));
  }
}

TEST(Reduce, IntegersAreExact) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::i64, DType::i32})
      for (const Reduce f : {Reduce::sum, Reduce::max, Reduce::min, Reduce::sum_squares})
        for (unsigned mask = 0; mask < 4; ++mask) {
          const auto x = integers(7 * 300, -1000, 1000);
          Sizes reduced;
          const Outcome want = reference(f, x, {7, 300}, mask, reduced);
          const DeviceArray y(kind, dtype, reduced);
          kernels::reduce(queue_on(kind), f, y, DeviceArray(kind, dtype, {7, 300}, x));
          EXPECT_TRUE(near(y.host(), want.values, {})) << "function " << static_cast<int>(f) << " dims " << mask;
        }
}

TEST(Reduce, NothingAndNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray empty(kind, DType::f32, {3, 0}), y(kind, DType::f32, {3, 1});
    kernels::reduce(queue_on(kind), Reduce::sum, y, empty);
    EXPECT_TRUE(near(y.host(), {0, 0, 0}, {}));
    kernels::reduce(queue_on(kind), Reduce::mean, y, empty);
    EXPECT_TRUE(near(y.host(), {nan, nan, nan}, {}));
    EXPECT_NE(error_text([&] { kernels::reduce(queue_on(kind), Reduce::max, y, empty); }), "");
    const DeviceArray no_rows(kind, DType::f32, {0, 3}), columns(kind, DType::f32, {1, 3});
    kernels::reduce(queue_on(kind), Reduce::sum, columns, no_rows);
    EXPECT_TRUE(near(columns.host(), {0, 0, 0}, {}));
    kernels::reduce(queue_on(kind), Reduce::mean, columns, no_rows);
    EXPECT_TRUE(near(columns.host(), {nan, nan, nan}, {}));
    const DeviceArray x(kind, DType::f32, {3, 3}, {1, nan, 2, nan, 1, 0, 3, 4, nan});
    std::vector<double> values(400, 1);  // one NaN in the second warp of a row
    values[57] = nan, values[399] = -5;
    const DeviceArray wide(kind, DType::f32, {2, 200}, values), of_rows(kind, DType::f32, {2, 1});
    for (const Reduce f : {Reduce::max, Reduce::min}) {
      kernels::reduce(queue_on(kind), f, y, x);
      EXPECT_TRUE(near(y.host(), {nan, nan, nan}, {}));
      kernels::reduce(queue_on(kind), f, of_rows, wide);
      EXPECT_TRUE(near(of_rows.host(), {nan, f == Reduce::max ? 1.0 : -5.0}, {}));
    }
    const DeviceArray place(kind, DType::i64, {2, 1});
    kernels::argmax(queue_on(kind), place, wide, 1);
    EXPECT_TRUE(near(place.host(), {57, 0}, {}));
  }
}

TEST(Argmax, EveryDtypeAndDimension) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8})
      for (int dim = 0; dim < 3; ++dim) {
        SCOPED_TRACE(str(dtype, " along ", dim, " on ", name(kind)));
        add_row({"kernel", "argmax", std::string(name(kind)), std::string(name(dtype)), "Argmax"});
        const Sizes sizes = pick(0, 1) ? Sizes{pick(2, 6), pick(2, 40), pick(2, 9)} : Sizes{13, 10, 41};
        Sizes kept = sizes;
        kept[static_cast<size_t>(dim)] = 1;
        const auto x = integers(count_of(sizes), 0, 7);  // ties on purpose
        int64_t inner = 1;
        for (size_t d = static_cast<size_t>(dim) + 1; d < 3; ++d) inner *= sizes[d];
        const int64_t length = sizes[static_cast<size_t>(dim)];
        std::vector<double> want;
        for (int64_t i = 0; i < count_of(kept); ++i) {
          const int64_t base = i / inner * length * inner + i % inner;
          int64_t best = 0;
          for (int64_t k = 1; k < length; ++k)
            if (x[base + k * inner] > x[base + best * inner]) best = k;
          want.push_back(static_cast<double>(best));
        }
        const DeviceArray y(kind, DType::i64, kept);
        kernels::argmax(queue_on(kind), y, DeviceArray(kind, dtype, sizes, x), dim);
        EXPECT_TRUE(near(y.host(), want, {}));
      }
}

TEST(Argmax, FirstOfTheLargest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {3, 4}, {1, 5, 5, 2, nan, 9, nan, 1, -3, -2, -4, -2});
    const DeviceArray rows(kind, DType::i64, {3, 1}), columns(kind, DType::i64, {1, 4});
    kernels::argmax(queue_on(kind), rows, x, 1);
    EXPECT_TRUE(near(rows.host(), {1, 0, 1}, {}));
    kernels::argmax(queue_on(kind), columns, x, 0);
    EXPECT_TRUE(near(columns.host(), {1, 1, 1, 0}, {}));
  }
}

}  // namespace
}  // namespace weft::tests
