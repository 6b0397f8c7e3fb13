// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/index.h"

#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

const DType kIndexed[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                          DType::i64, DType::i32, DType::u8,   DType::boolean};

/// [outer, length, inner] around dimension `dim` of sizes.
struct Around {
  int64_t outer = 1, length, inner = 1;
  Around(const Sizes& sizes, int dim) : length(sizes[static_cast<size_t>(dim)]) {
    for (int d = 0; d < dim; ++d) outer *= sizes[static_cast<size_t>(d)];
    for (size_t d = static_cast<size_t>(dim) + 1; d < sizes.size(); ++d) inner *= sizes[d];
  }
  int64_t at(int64_t o, int64_t i, int64_t c) const { return (o * length + i) * inner + c; }
};

TEST(Index, SelectAndItsGradient) {
  struct Case {
    Sizes sizes;
    int64_t n;
    int dim;
  };
  std::vector<Case> cases{{{4, 9, 16}, 13, 1}, {{9, 5}, 13, 0}, {{9, 2}, 2300, 0}, {{9, 6}, 0, 0}};
  for (int dim = 0; dim < 3; ++dim) cases.push_back({{pick(1, 6), pick(1, 20), pick(1, 9)}, pick(1, 40), dim});
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kIndexed)
      for (const auto& [sizes, n, dim] : cases) {
        Sizes picked = sizes;
        picked[static_cast<size_t>(dim)] = n;
        const Around x_shape(sizes, dim), y_shape(picked, dim);
        const auto x = integers(count_of(sizes), 0, 1), index = integers(n, 0, x_shape.length - 1);
        const auto dy = integers(count_of(picked), -2, 2);  // sums are exact in every dtype
        std::vector<double> y(dy.size()), dx(x.size());
        for (int64_t o = 0; o < y_shape.outer; ++o)
          for (int64_t i = 0; i < n; ++i)
            for (int64_t c = 0; c < y_shape.inner; ++c) {
              const int64_t from = x_shape.at(o, static_cast<int64_t>(index[i]), c);
              y[y_shape.at(o, i, c)] = x[from];
              dx[from] += dy[y_shape.at(o, i, c)];
            }
        const DeviceArray index_array(kind, DType::i64, {n}, index), out(kind, dtype, picked);
        kernels::index_select(queue_on(kind), out, DeviceArray(kind, dtype, sizes, x), index_array, dim);
        EXPECT_TRUE(near(out.host(), y, {})) << dtype << " dim " << dim;
        if (!is_floating(dtype)) continue;
        const DeviceArray back(kind, dtype, sizes);
        kernels::index_select_backward(queue_on(kind), back, DeviceArray(kind, dtype, picked, dy), index_array, dim);
        EXPECT_TRUE(near(back.host(), dx, {})) << dtype << " dim " << dim;
      }
}

TEST(Index, GatherAndItsGradient) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kIndexed)
      for (int dim = 0; dim < 3; ++dim) {
        const Sizes sizes = pick(0, 1) ? Sizes{pick(1, 6), pick(1, 20), pick(1, 9)} : Sizes{4, 9, 16};
        Sizes picked = sizes;
        picked[static_cast<size_t>(dim)] = pick(1, 30);
        const Around x_shape(sizes, dim), y_shape(picked, dim);
        const auto x = integers(count_of(sizes), 0, 1), dy = integers(count_of(picked), -2, 2);
        const auto index = integers(count_of(picked), 0, x_shape.length - 1);
        std::vector<double> y(dy.size()), dx(x.size());
        for (int64_t o = 0; o < y_shape.outer; ++o)
          for (int64_t i = 0; i < y_shape.length; ++i)
            for (int64_t c = 0; c < y_shape.inner; ++c) {
              const int64_t at = y_shape.at(o, i, c), from = x_shape.at(o, static_cast<int64_t>(index[at]), c);
              y[at] = x[from];
              dx[from] += dy[at];
            }
        const DeviceArray index_array(kind, DType::i64, picked, index), out(kind, dtype, picked);
        kernels::gather(queue_on(kind), out, DeviceArray(kind, dtype, sizes, x), index_array, dim);
        EXPECT_TRUE(near(out.host(), y, {})) << dtype << " dim " << dim;
        if (!is_floating(dtype)) continue;
        const DeviceArray back(kind, dtype, sizes);
        kernels::gather_backward(queue_on(kind), back, DeviceArray(kind, dtype, picked, dy), index_array, dim);
        EXPECT_TRUE(near(back.host(), dx, {})) << dtype << " dim " << dim;
      }
}

TEST(Index, PutKeepsTheLastOfEqualPositions) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : kIndexed)
      for (const int64_t n : {int64_t{1}, pick(2, 40), int64_t{700}}) {
        const int64_t rows = pick(1, 20), inner = pick(1, 9);
        const auto before = integers(rows * inner, 0, 1), values = integers(n * inner, 0, 1);
        const auto index = integers(n, 0, rows - 1);
        std::vector<double> want = before;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t c = 0; c < inner; ++c)
            want[static_cast<size_t>(static_cast<int64_t>(index[static_cast<size_t>(i)]) * inner + c)] =
                values[static_cast<size_t>(i * inner + c)];
        const DeviceArray y(kind, dtype, {rows, inner}, before);
        kernels::index_put(queue_on(kind), y, DeviceArray(kind, dtype, {n, inner}, values),
                           DeviceArray(kind, DType::i64, {n}, index));
        EXPECT_TRUE(near(y.host(), want, {})) << dtype << ' ' << n << " into " << y.view();
      }
}

TEST(Index, RavelIsOneStepOfHorner) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray y(kind, DType::i64, {3, 2}, {0, 1, 2, 3, 4, 5});
    kernels::ravel_index(queue_on(kind), y, DeviceArray(kind, DType::i64, {3, 2}, {0, 6, -1, -7, 2, 3}), 7);
    EXPECT_EQ(y.host(), (std::vector<double>{0, 13, 20, 21, 30, 38})) << name(kind);
    const auto before = integers(400, 0, 9), index = integers(400, -5, 4);  // more than one block
    const DeviceArray many(kind, DType::i64, {400}, before);
    kernels::ravel_index(queue_on(kind), many, DeviceArray(kind, DType::i64, {400}, index), 5);
    std::vector<double> want;
    for (size_t i = 0; i < 400; ++i) want.push_back(before[i] * 5 + index[i] + (index[i] < 0 ? 5 : 0));
    EXPECT_EQ(many.host(), want) << name(kind);
  }
}

TEST(Index, APositionOutsideReadsNothingOnAGpu) {
  constexpr DeviceKind kind = DeviceKind::cuda;
  if (!runs_on(kind)) GTEST_SKIP() << "needs the device cuda";
  const kernels::Queue queue = queue_on(kind);
  const DeviceArray index(kind, DType::i64, {3}, {-1, 1, 2}), y(kind, DType::bf16, {3}), whole(kind, DType::i64, {3});
  kernels::index_select(queue, y, DeviceArray(kind, DType::bf16, {2}, {5, 6}), index, 0);
  kernels::gather(queue, whole, DeviceArray(kind, DType::i64, {2}, {5, 6}), index, 0);
  const DeviceArray put(kind, DType::f32, {2}, {1, 2}), ravelled(kind, DType::i64, {3}, {0, -1, 0});
  kernels::index_put(queue, put, DeviceArray(kind, DType::f32, {3}, {7, 8, 9}), index);
  kernels::ravel_index(queue, ravelled, DeviceArray(kind, DType::i64, {3}, {-3, 1, 2}), 2);
  EXPECT_TRUE(near(y.host(), {NAN, 6, NAN}, {}));
  EXPECT_EQ(whole.host(), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(put.host(), (std::vector<double>{1, 8}));
  EXPECT_EQ(ravelled.host(), (std::vector<double>{-1, -1, -1}));
}

TEST(Index, APositionOutsideIsNamed) {
  const DeviceArray x(DeviceKind::cpu, DType::f32, {3, 2}), y(DeviceKind::cpu, DType::f32, {2, 2});
  const DeviceArray index(DeviceKind::cpu, DType::i64, {2}, {0, 3});
  EXPECT_EQ(error_text([&] { kernels::index_select(queue_on(DeviceKind::cpu), y, x, index, 0); }),
            "index_select: expected positions in [0, 3), got 3 as number 1 of the index");
  EXPECT_EQ(error_text([&] { kernels::index_put(queue_on(DeviceKind::cpu), x, y, index); }),
            "index_put: expected positions in [0, 3), got 3 as number 1 of the index");
  const DeviceArray at(DeviceKind::cpu, DType::i64, {2}, {0, 0});
  EXPECT_EQ(error_text([&] { kernels::ravel_index(queue_on(DeviceKind::cpu), at, index, 3); }),
            "index: expected positions in [-3, 3), got 3 as number 1 of the index");
}

}  // namespace
}  // namespace weft::tests
