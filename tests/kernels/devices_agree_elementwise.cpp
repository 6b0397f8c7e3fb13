// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.h"
#include "kernels/binary.h"
#include "kernels/pool2d.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "kernels/unary.h"
#include "tests/kernels/devices_agree.h"
#include "tests/support/unary_references.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, Unary) {
  for (int f = 0; f < kernels::kUnaryCount; ++f)
    for (const DType dtype : kFloating)
      expect_agreement(str(name(static_cast<kernels::Unary>(f)), " ", dtype), [&](Call& c) {
        const auto which = static_cast<kernels::Unary>(f);
        const double low = reference_of(which).domain == Domain::positive ? 0.25 : -3;
        const kernels::UnaryArguments arguments{0.5, 0.75};
        for (const int64_t n : {67, 256}) {
          const View x = c.random(dtype, {n}, low, 3), y = c.output(dtype, {n});
          kernels::unary_forward(c.queue, which, y, x, arguments);
          // The derivative of the CPU's own output would be computed from other roundings: take a fresh one.
          const View saved = c.random(dtype, {n}, low, 3);
          kernels::unary_backward(c.queue, which, c.output(dtype, {n}), c.random(dtype, {n}), saved, arguments);
        }
        const View x = c.random(dtype, {6, 11}, low, 3);
        kernels::unary_forward(c.queue, which, c.output(dtype, {11, 6}), permuted(x, {1, 0}), arguments);
        kernels::unary_backward(c.queue, which, c.output(dtype, {11, 6}), c.random(dtype, {11, 6}), permuted(x, {1, 0}),
                                arguments);
      });
  for (const DType dtype : {DType::i64, DType::i32})
    for (int f = 0; f < kernels::kUnaryCount; ++f) {
      const auto which = static_cast<kernels::Unary>(f);
      if (!kernels::unary_takes_integers(which)) continue;
      expect_agreement(str(name(which), " of ", dtype), [&](Call& c) {
        kernels::unary_forward(c.queue, which, c.output(dtype, {65}), c.integers(dtype, {65}, -50, 50), {3, 7});
      });
    }
}

TEST(DevicesAgree, Binary) {
  for (int f = 0; f < kernels::kBinaryCount; ++f)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32})
      expect_agreement(str("binary ", f, " ", dtype), [&](Call& c) {
        const auto which = static_cast<kernels::Binary>(f);
        const auto input = [&](const Sizes& sizes) {
          return is_floating(dtype) ? c.random(dtype, sizes, 0.25, 3) : c.integers(dtype, sizes, 1, 6);
        };
        const View a = input({24, 32}), row = input({1, 32}), column = input({24, 1}), odd = input({24, 33});
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), a, input({24, 32}), 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), a, broadcast(row, 0, 24), 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), broadcast(column, 1, 32), a, 2);
        kernels::binary_forward(c.queue, which, c.output(dtype, {24, 32}), slice(odd, 1, 1, 32), a, 2);
        const View b = c.inout(input({24, 33}));
        kernels::binary_forward(c.queue, which, b, b, odd, 1);
      });
  expect_agreement("nothing", [&](Call& c) {
    kernels::binary_forward(c.queue, kernels::Binary::add, c.output(DType::f32, {0, 4}), c.random(DType::f32, {0, 4}),
                            c.random(DType::f32, {0, 4}), 1);
  });
}

TEST(DevicesAgree, CompareAndWhere) {
  for (const DType dtype : kAll)
    for (int f = 0; f < kernels::kCompareCount; ++f)
      expect_agreement(str("compare ", f, " ", dtype), [&](Call& c) {
        const View a = c.integers(dtype, {9, 20}, 0, 1), b = c.integers(dtype, {9, 20}, 0, 1);
        kernels::compare(c.queue, static_cast<kernels::Compare>(f), c.output(DType::boolean, {9, 20}), a, b);
        const View condition = c.integers(DType::boolean, {9, 20}, 0, 1);
        kernels::where(c.queue, c.output(dtype, {9, 20}), condition, a, b);
        kernels::where(c.queue, c.output(dtype, {9, 20}), broadcast(slice(condition, 1, 0, 1), 1, 20), a, b);
      });
}

TEST(DevicesAgree, UnalignedStarts) {
  for (const DType dtype : {DType::f32, DType::bf16})
    expect_agreement(str("an offset of one element, ", dtype), [&](Call& c) {
      const auto tail = [](const View& view, Sizes sizes) {
        View moved = view;
        moved.data = static_cast<char*>(view.data) + size_of(view.dtype);
        moved.rank = static_cast<int>(sizes.size());
        int64_t stride = 1;
        for (int d = moved.rank - 1; d >= 0; --d) {
          moved.sizes[d] = sizes[d];
          moved.strides[d] = stride;
          stride *= sizes[d];
        }
        return moved;
      };
      const auto in = [&](const Sizes& sizes) { return tail(c.random(dtype, {count_of(sizes) + 1}, 0.5, 2), sizes); };
      const auto out = [&](const Sizes& sizes, int64_t K = 1) {
        return tail(c.inout(c.random(dtype, {count_of(sizes) + 1}), K), sizes);
      };
      kernels::unary_forward(c.queue, kernels::Unary::exp, out({64}), in({64}), {});
      kernels::binary_forward(c.queue, kernels::Binary::mul, out({8, 16}), in({8, 16}), in({8, 16}), 1);
      kernels::reduce(c.queue, kernels::Reduce::sum, out({1}, 4096), in({4096}));
      kernels::softmax_forward(c.queue, out({4, 64}, 64), in({4, 64}), false);
      kernels::batch_norm_inference(c.queue, out({40, 16}), in({40, 16}), c.random(DType::f32, {16}),
                                    c.random(DType::f32, {16}, 1, 2), View::none(), View::none(), View::none(), {});
      kernels::adaptive_avg_pool2d_forward(c.queue, out({2, 2, 2, 16}, 16), in({2, 8, 8, 16}));
    });
}

}  // namespace
}  // namespace weft::tests
