// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/binary.h"

#include <limits>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/rows.h"
#include "tests/support/strided.h"

namespace weft::tests {
namespace {

using kernels::Binary;
using kernels::Compare;

double value(Binary f, double a, double b, double alpha) {
  switch (f) {
    case Binary::add:
      return a + alpha * b;
    case Binary::sub:
      return a - b;
    case Binary::mul:
      return a * b;
    case Binary::div:
      return a / b;
    case Binary::maximum:
      return std::max(a, b);
    case Binary::minimum:
      return std::min(a, b);
    case Binary::pow:
      return std::pow(a, b);
    case Binary::atan2:
      return std::atan(a / b);
    case Binary::fmod:
    case Binary::remainder:
      return a - b * std::floor(a / b);
  }
  return 0;
}

bool value(Compare f, double a, double b) {
  switch (f) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::logical_and:
      return a != 0 && b != 0;
    case Compare::logical_or:
      return a != 0 || b != 0;
  }
  return false;
}

TEST(Binary, EqualsReferenceForEveryLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32})
      for (int i = 0; i < kernels::kBinaryCount; ++i)
        for (const Layout layout :
             {Layout::dense, Layout::permuted, Layout::gaps, Layout::broadcast, Layout::columns, Layout::stretched}) {
          const Binary f = static_cast<Binary>(i);
          // The products of -0.5 are exact: a sum of two may cancel.
          const double alpha = is_floating(dtype) ? -0.5 : 2;
          const Sizes sizes = pick(0, 1) ? Sizes{pick(1, 5), pick(1, 40), pick(1, 5)} : Sizes{24, 32};
          SCOPED_TRACE(str("function ", i, " ", dtype, " layout ", static_cast<int>(layout), " on ", name(kind)));
          const int64_t memory = memory_for(sizes), n = count_of(sizes);
          const auto drawn = [&](int64_t count) {
            return is_floating(dtype) ? uniform(count, dtype, 0.25, 2) : integers(count, 1, 6);
          };
          const auto a = drawn(memory), b = drawn(n);
          const DeviceArray a_array(kind, dtype, {memory}, a), b_array(kind, dtype, sizes, b);
          const Strided left = strided(a_array, sizes, layout);
          const DeviceArray y(kind, dtype, sizes);
          kernels::binary_forward(queue_on(kind), f, y, left.view, b_array, alpha);
          std::vector<double> want(b.size());
          for (size_t k = 0; k < want.size(); ++k) {
            want[k] = value(f, left.at(a, k), b[k], alpha);
            if (!is_floating(dtype)) want[k] = std::trunc(want[k]);
          }
          EXPECT_TRUE(near(y.host(), want, tolerance(dtype, 4)));
        }
}

TEST(Binary, BroadcastsRowsColumnsAndSingleElements) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const int64_t columns : {32L, 33L})  // whole 16-byte units, and not
        for (const bool along_rows : {false, true})
          for (const bool along_columns : {false, true}) {
            const int64_t rows = 24;
            const auto a = uniform(rows * columns, dtype), b = uniform(rows * columns, dtype);
            const DeviceArray y(kind, dtype, {rows, columns}), a_array(kind, dtype, {rows, columns}, a);
            const DeviceArray b_array(kind, dtype, {rows, columns}, b);
            kernels::View stretched = b_array.view();
            if (along_rows) stretched.strides[0] = 0;
            if (along_columns) stretched.strides[1] = 0;
            kernels::binary_forward(queue_on(kind), Binary::sub, y, a_array, stretched, 1);
            std::vector<double> want;
            for (int64_t i = 0; i < rows * columns; ++i)
              want.push_back(a[i] - b[(along_rows ? 0 : i / columns * columns) + (along_columns ? 0 : i % columns)]);
            EXPECT_TRUE(near(y.host(), want, tolerance(dtype)))
                << dtype << " columns " << columns << " stretched along " << along_rows << along_columns;
          }
}

TEST(Binary, RowsThatBeginOffA16ByteBoundary) {
  const int64_t rows = 6, columns = 32, pitch = 33;
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const int64_t first : {0, 1}) {
        const auto a = uniform(rows * pitch, dtype), b = uniform(rows * columns, dtype);
        const DeviceArray y(kind, dtype, {rows, columns}), a_array(kind, dtype, {rows, pitch}, a);
        kernels::View left = a_array.view();
        left.sizes[1] = columns;
        left.data = static_cast<char*>(left.data) + first * static_cast<int64_t>(size_of(dtype));
        kernels::binary_forward(queue_on(kind), Binary::add, y, left, DeviceArray(kind, dtype, {rows, columns}, b), 1);
        std::vector<double> want;
        for (int64_t i = 0; i < rows * columns; ++i)
          want.push_back(a[i / columns * pitch + i % columns + first] + b[i]);
        EXPECT_TRUE(near(y.host(), want, tolerance(dtype))) << dtype << " on " << name(kind);
      }
}

TEST(Binary, IntegersTruncateAndNeverTrap) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::i64, DType::i32}) {
      const DeviceArray a(kind, dtype, {6}, {7, -7, 5, 2, -3, 2}), b(kind, dtype, {6}, {2, 2, 0, 10, 3, -1});
      const DeviceArray y(kind, dtype, {6});
      const auto run = [&](Binary f) {
        kernels::binary_forward(queue_on(kind), f, y, a, b, 3);
        return y.host();
      };
      EXPECT_TRUE(near(run(Binary::div), {3, -3, 0, 0, -1, -2}, {}));
      EXPECT_TRUE(near(run(Binary::pow), {49, 49, 1, 1024, -27, 0}, {}));
      EXPECT_TRUE(near(run(Binary::add), {13, -1, 5, 32, 6, -1}, {}));
    }
}

TEST(Binary, NanWinsMaximumAndMinimum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DeviceKind kind : test_devices())
    for (const Binary f : {Binary::maximum, Binary::minimum}) {
      const DeviceArray y(kind, DType::f32, {2});
      kernels::binary_forward(queue_on(kind), f, y, DeviceArray(kind, DType::f32, {2}, {nan, 1}),
                              DeviceArray(kind, DType::f32, {2}, {1, nan}), 0);
      EXPECT_TRUE(near(y.host(), {nan, nan}, {}));
    }
}

TEST(Binary, InPlaceAndLarge) {
  for (const DeviceKind kind : test_devices()) {
    const int64_t rows = 701, columns = 101;  // two threads share a row
    const auto a = uniform(rows * columns, DType::f32), b = uniform(columns, DType::f32);
    const DeviceArray a_array(kind, DType::f32, {rows, columns}, a), b_array(kind, DType::f32, {columns}, b);
    kernels::View row = b_array.view();
    row.rank = 2, row.sizes = {rows, columns}, row.strides = {0, 1};
    kernels::binary_forward(queue_on(kind), Binary::add, a_array, a_array, row, 1);
    std::vector<double> want = a;
    for (size_t i = 0; i < want.size(); ++i) want[i] += b[i % static_cast<size_t>(columns)];
    EXPECT_TRUE(near(a_array.host(), want, tolerance(DType::f32)));
  }
}

TEST(Binary, NothingToDo) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray empty(kind, DType::f32, {0, 4});
    kernels::binary_forward(queue_on(kind), Binary::add, empty, empty, empty, 1);
  }
}

TEST(Compare, EveryPredicateOfEveryDtype) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype :
         {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean})
      for (int i = 0; i < kernels::kCompareCount; ++i) {
        add_row({"kernel", "compare", std::string(name(kind)), std::string(name(dtype)), "Compare"});
        const bool is_bool = dtype == DType::boolean;
        const auto a = integers(77, 0, is_bool ? 1 : 3), b = integers(77, 0, is_bool ? 1 : 3);
        const DeviceArray y(kind, DType::boolean, {7, 11});
        kernels::compare(queue_on(kind), static_cast<Compare>(i), y, DeviceArray(kind, dtype, {7, 11}, a),
                         DeviceArray(kind, dtype, {7, 11}, b));
        std::vector<double> want;
        for (size_t k = 0; k < a.size(); ++k) want.push_back(value(static_cast<Compare>(i), a[k], b[k]));
        EXPECT_TRUE(near(y.host(), want, {})) << "predicate " << i << " of " << dtype;
      }
}

TEST(Where, ChoosesFromAnyLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype :
         {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean})
      for (const Sizes& sizes : {Sizes{4, 5, 3}, Sizes{9, 20}})
        for (const Layout layout : {Layout::dense, Layout::permuted, Layout::broadcast, Layout::stretched}) {
          const int64_t n = count_of(sizes), most = dtype == DType::boolean ? 1 : 100;
          const auto condition = integers(memory_for(sizes), 0, 1), a = integers(memory_for(sizes), 0, most),
                     b = integers(n, 0, most);
          const DeviceArray condition_array(kind, DType::boolean, {memory_for(sizes)}, condition),
              a_array(kind, dtype, {memory_for(sizes)}, a), y(kind, dtype, sizes);
          const bool of_condition = pick(0, 1) == 1;
          const Strided chooser = strided(condition_array, sizes, of_condition ? layout : Layout::dense),
                        left = strided(a_array, sizes, of_condition ? Layout::dense : layout);
          kernels::where(queue_on(kind), y, chooser.view, left.view, DeviceArray(kind, dtype, sizes, b));
          std::vector<double> want;
          for (size_t i = 0; i < b.size(); ++i) want.push_back(chooser.at(condition, i) != 0 ? left.at(a, i) : b[i]);
          EXPECT_TRUE(near(y.host(), want, {})) << dtype << ' ' << left.view << " by " << chooser.view;
        }
}

}  // namespace
}  // namespace weft::tests
