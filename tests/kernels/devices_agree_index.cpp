// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cumsum.h"
#include "kernels/index.h"
#include "kernels/random.h"
#include "kernels/sort.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, Index) {
  for (const DType dtype : kAll)
    expect_agreement(str("index ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {4, 9, 16}, 0, 1), odd = c.integers(dtype, {9, 5}, 0, 1);
      const View index = c.integers(DType::i64, {13}, 0, 8);
      kernels::index_select(c.queue, c.output(dtype, {4, 13, 16}), x, index, 1);
      kernels::index_select(c.queue, c.output(dtype, {13, 5}), odd, index, 0);
      kernels::gather(c.queue, c.output(dtype, {4, 3, 16}), x, c.integers(DType::i64, {4, 3, 16}, 0, 8), 1);
      kernels::gather(c.queue, c.output(dtype, {9, 2}), odd, c.integers(DType::i64, {9, 2}, 0, 4), 1);
    });
  for (const DType dtype : kAll)
    expect_agreement(str("order ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {3, 2300}, 0, 1), index = c.integers(DType::i64, {300}, 0, 8);
      kernels::sort(c.queue, c.output(dtype, {3, 2300}), c.output(DType::i64, {3, 2300}), x, false);
      kernels::sort(c.queue, c.output(dtype, {3, 5}), c.output(DType::i64, {3, 5}), x, true);
      kernels::cumsum(c.queue, c.output(is_floating(dtype) ? dtype : DType::i64, {3, 2300}, 2300), x, false);
      kernels::index_put(c.queue, c.inout(c.integers(dtype, {9, 6}, 0, 1)), c.integers(dtype, {300, 6}, 0, 1), index);
    });
  expect_agreement("positions", [&](Call& c) {
    const View x = c.given(DType::boolean, {2, 3}, {1, 0, 0, 1, 1, 0});
    kernels::nonzero(c.queue, c.output(DType::i64, {3, 2}), x, c.given(DType::i64, {6}, {1, 1, 1, 2, 3, 3}));
    kernels::ravel_index(c.queue, c.inout(c.integers(DType::i64, {400}, 0, 9)), c.integers(DType::i64, {400}, -5, 4),
                         5);
  });
  for (const DType dtype : kFloating)
    expect_agreement(str("index backward ", dtype), [&](Call& c) {
      const View often = c.integers(DType::i64, {2300}, 0, 8);
      kernels::index_select_backward(c.queue, c.output(dtype, {9, 2}, 2300), c.random(dtype, {2300, 2}), often, 0);
      const View index = c.integers(DType::i64, {40}, 0, 8);
      kernels::index_select_backward(c.queue, c.output(dtype, {4, 9, 6}, 40), c.random(dtype, {4, 40, 6}), index, 1);
      kernels::index_select_backward(c.queue, c.output(dtype, {9, 6}), c.random(dtype, {0, 6}),
                                     c.integers(DType::i64, {0}, 0, 1), 0);
      kernels::gather_backward(c.queue, c.output(dtype, {4, 9, 6}, 7), c.random(dtype, {4, 7, 6}),
                               c.integers(DType::i64, {4, 7, 6}, 0, 8), 1);
    });
}

TEST(DevicesAgree, IndexOutOfRangeReadsNothing) {
  for (const DeviceKind kind : device_runs()) {
    if (kind == DeviceKind::cpu) continue;  // has exceptions
    Call c(kind, 1);
    const View index = c.given(DType::i64, {3}, {-1, 1, 2});
    c.output(DType::f32, {3});
    c.output(DType::i32, {3});
    const View y = c.output(DType::bf16, {3}), i = c.output(DType::i64, {3});
    kernels::index_select(c.queue, y, c.given(DType::bf16, {2}, {5, 6}), index, 0);
    kernels::gather(c.queue, i, c.given(DType::i64, {2}, {5, 6}), index, 0);
    const View put = c.inout(c.given(DType::f32, {2}, {1, 2})),
               ravelled = c.inout(c.given(DType::i64, {3}, {0, -1, 0}));
    kernels::index_put(c.queue, put, c.given(DType::f32, {3}, {7, 8, 9}), index);
    kernels::ravel_index(c.queue, ravelled, c.given(DType::i64, {3}, {-3, 1, 2}), 2);
    const auto results = c.results();
    EXPECT_TRUE(std::isnan(results[2].values[0]));
    EXPECT_EQ(results[2].values[1], 6);
    EXPECT_TRUE(std::isnan(results[2].values[2]));
    EXPECT_EQ(results[3].values, (std::vector<double>{0, 6, 0}));
    EXPECT_EQ(results[4].values, (std::vector<double>{1, 8}));
    EXPECT_EQ(results[5].values, (std::vector<double>{-1, -1, -1}));
  }
}

TEST(DevicesAgree, RandomNumbers) {
  const auto state = [](Call& c) { return c.given(DType::i64, {2}, {123456789, 5000000000.0}); };
  for (const int64_t n : {1, 2, 3, 1030})
    for (const DType dtype : kFloating)
      expect_agreement(str("draws ", dtype, " ", n), [&](Call& c) {
        const View s = state(c);
        kernels::random_uniform(c.queue, c.output(dtype, {n}), s, {7}, -3, 5);
        kernels::random_normal(c.queue, c.output(dtype, {n}), s, {7}, 1, 2);
        kernels::random_bernoulli(c.queue, c.output(dtype, {n}), s, {7}, 0.3);
        kernels::dropout(c.queue, c.output(dtype, {n}), c.random(dtype, {n}), s, {7}, 0.3);
      });
  for (const DType dtype : {DType::i64, DType::i32, DType::u8, DType::boolean})
    expect_agreement("Bernoulli of integers",
                     [&](Call& c) { kernels::random_bernoulli(c.queue, c.output(dtype, {77}), state(c), {0}, 0.5); });
  for (const int64_t n : {0, 1, 2, 17, 1000})
    expect_agreement("permutation",
                     [&](Call& c) { kernels::random_permutation(c.queue, c.output(DType::i64, {n}), state(c), {3}); });
}

}  // namespace
}  // namespace weft::tests
