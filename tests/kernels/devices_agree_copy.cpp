// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"
#include "kernels/fill.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, FillAndArange) {
  for (const DType dtype : kAll) {
    for (const int64_t n : {0, 1, 7, 1025})
      expect_agreement(str("fill ", dtype, " ", n),
                       [&](Call& c) { kernels::fill(c.queue, c.output(dtype, {n}), 3.75); });
    expect_agreement("fill of a column", [&](Call& c) {
      const View y = c.inout(c.integers(dtype, {9, 6}, 0, 1));
      kernels::fill(c.queue, slice(y, 1, 2, 3), 2);
    });
    if (dtype != DType::boolean)
      expect_agreement("arange", [&](Call& c) {
        kernels::arange(c.queue, c.output(dtype, {300}), 3, dtype == DType::u8 ? 0.5 : -1.5);
      });
  }
}

TEST(DevicesAgree, CopyConvertsEveryPair) {
  for (const DType to : kAll)
    for (const DType from : kAll)
      expect_agreement(str(from, " to ", to), [&](Call& c) {
        const View x = is_floating(from) ? c.random(from, {5, 37}, 0, 100) : c.integers(from, {5, 37}, 0, 1);
        kernels::copy(c.queue, c.output(to, {5, 37}), x);
        kernels::copy(c.queue, c.output(to, {37, 5}), permuted(x, {1, 0}));
      });
}

TEST(DevicesAgree, CopyOfStridedViews) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::u8, DType::i64}) {
    expect_agreement(str("transpose ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {3, 70, 45, 4}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {3, 4, 70, 45}), permuted(x, {0, 3, 1, 2}));
      kernels::copy(c.queue, c.output(dtype, {45, 70, 4, 3}), permuted(x, {2, 1, 3, 0}));
      const View flat = c.integers(dtype, {50, 33}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {33, 50}), permuted(flat, {1, 0}));
      kernels::copy(c.queue, permuted(c.output(dtype, {50, 33}), {1, 0}), c.integers(dtype, {33, 50}, 0, 100));
    });
    expect_agreement(str("slices ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {12, 40}, 0, 100);
      kernels::copy(c.queue, c.output(dtype, {12, 16}), slice(x, 1, 8, 16));
      kernels::copy(c.queue, c.output(dtype, {12, 13}), slice(x, 1, 3, 13));
      kernels::copy(c.queue, c.output(dtype, {6, 20}), slice(slice(x, 0, 1, 6, 2), 1, 0, 20, 2));
      kernels::copy(c.queue, slice(c.inout(c.integers(dtype, {12, 40}, 0, 100)), 1, 5, 7), slice(x, 1, 0, 7));
      kernels::copy(c.queue, c.output(dtype, {6, 40}), broadcast(slice(x, 0, 3, 1), 0, 6));
      kernels::copy(c.queue, c.output(dtype, {12, 8}), broadcast(slice(x, 1, 3, 1), 1, 8));
    });
  }
}

}  // namespace
}  // namespace weft::tests
