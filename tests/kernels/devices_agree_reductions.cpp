// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cross_entropy.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "tests/kernels/devices_agree.h"

namespace weft::tests {
namespace {

TEST(DevicesAgree, Reduce) {
  using kernels::Reduce;
  struct Shape {
    Sizes x, y;
  };
  const Shape shapes[] = {{{1}, {1}},
                          {{300}, {1}},
                          {{9000}, {1}},
                          {{40, 6}, {1, 6}},
                          {{700, 40}, {1, 40}},
                          {{40, 6}, {40, 1}},
                          {{5, 96}, {5, 1}},
                          {{3, 2500}, {3, 1}},
                          {{2, 9, 3, 8}, {1, 1, 1, 8}},
                          {{4, 5, 6, 8}, {4, 1, 1, 8}},
                          {{4, 5, 6}, {1, 5, 1}},
                          {{4, 5, 6}, {4, 1, 6}},
                          {{0, 3}, {0, 1}}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32})
    for (const Reduce f : {Reduce::sum, Reduce::mean, Reduce::max, Reduce::min, Reduce::sum_squares, Reduce::norm}) {
      if (!is_floating(dtype) && (f == Reduce::mean || f == Reduce::norm)) continue;
      for (const Shape& s : shapes)
        expect_agreement(str("reduce ", static_cast<int>(f), " ", dtype, " of ", count_of(s.x)), [&](Call& c) {
          const View x = is_floating(dtype) ? c.random(dtype, s.x, 0, 2) : c.integers(dtype, s.x, -9, 9);
          const int64_t K = count_of(s.x) / std::max<int64_t>(count_of(s.y), 1);
          kernels::reduce(c.queue, f, c.output(dtype, s.y, K), x);
          if (is_floating(dtype) && dtype != DType::f64) kernels::reduce(c.queue, f, c.output(DType::f32, s.y, K), x);
        });
      expect_agreement("a permuted input", [&](Call& c) {
        const View x = is_floating(dtype) ? c.random(dtype, {7, 6, 20}, 0, 2) : c.integers(dtype, {7, 6, 20}, -9, 9);
        kernels::reduce(c.queue, f, c.output(dtype, {20, 1, 6}, 7), permuted(x, {2, 0, 1}));
        kernels::reduce(c.queue, f, c.output(dtype, {1, 7, 6}, 20), permuted(x, {2, 0, 1}));
        kernels::reduce(c.queue, f, c.output(dtype, {7, 6, 1}, 11), slice(x, 2, 3, 11));
      });
    }
}

TEST(DevicesAgree, ReduceOfNothingAndOfNaN) {
  for (const auto f : {kernels::Reduce::sum, kernels::Reduce::mean})
    expect_agreement("an empty sum", [&](Call& c) {
      kernels::reduce(c.queue, f, c.output(DType::f32, {1, 3}), c.random(DType::f32, {0, 3}));
    });
  for (const auto f : {kernels::Reduce::max, kernels::Reduce::min})
    expect_agreement("NaN wins", [&](Call& c) {
      std::vector<double> values(400, 1);
      values[57] = NAN;
      values[399] = -5;
      kernels::reduce(c.queue, f, c.output(DType::f32, {2, 1}), c.given(DType::f32, {2, 200}, values));
      kernels::argmax(c.queue, c.output(DType::i64, {2, 1}), c.given(DType::f32, {2, 200}, values), 1);
    });
}

TEST(DevicesAgree, Argmax) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64, DType::i32})
    expect_agreement(str("argmax ", dtype), [&](Call& c) {
      const View x = c.integers(dtype, {13, 10, 41}, -4, 4);  // with ties
      kernels::argmax(c.queue, c.output(DType::i64, {13, 10, 1}), x, 2);
      kernels::argmax(c.queue, c.output(DType::i64, {13, 1, 41}), x, 1);
      kernels::argmax(c.queue, c.output(DType::i64, {1, 10, 41}), x, 0);
    });
}

TEST(DevicesAgree, Softmax) {
  for (const DType dtype : kFloating)
    for (const Sizes& sizes :
         {Sizes{3, 10}, Sizes{9, 64}, Sizes{2, 333}, Sizes{2, 4, 128}, Sizes{2, 5000}, Sizes{1, 4099}})
      for (const bool log : {false, true})
        expect_agreement(str("softmax ", dtype, " of ", sizes.back()), [&](Call& c) {
          const int64_t C = sizes.back();
          const View x = c.random(dtype, sizes, -9, 9);
          kernels::softmax_forward(c.queue, c.output(dtype, sizes, C), x, log);
          const View y = c.random(dtype, sizes, log ? -9 : 0, log ? -6 : 0.01), dy = c.random(dtype, sizes);
          kernels::softmax_backward(c.queue, c.output(dtype, sizes, C), dy, y, log);
        });
}

TEST(DevicesAgree, CrossEntropy) {
  for (const DType dtype : kFloating)
    for (const int64_t C : {10, 64, 4104})
      for (const double smoothing : {0.0, 0.1})
        for (const bool classes : {true, false})
          expect_agreement(str("cross entropy ", dtype, " ", C, " smoothing ", smoothing), [&](Call& c) {
            const int64_t N = C > 1000 ? 2 : 11;
            const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
            const View logits = c.random(dtype, {N, C}, -8, 8);
            const View target = classes ? c.integers(DType::i64, {N}, 0, C - 1) : c.random(dtype, {N, C}, 0, 1);
            const kernels::CrossEntropyArguments arguments{smoothing, classes ? 3 : -100};
            const View loss = c.output(wide, {N}, C), lse = c.output(wide, {2, N}, C), weight = c.output(wide, {N});
            kernels::cross_entropy_forward(c.queue, loss, lse, weight, logits, target, arguments);
            kernels::cross_entropy_backward(c.queue, c.output(dtype, {N, C}, C), c.random(wide, {N}), logits, lse,
                                            target, arguments);
          });
  expect_agreement("a class out of range", [&](Call& c) {
    const View target = c.given(DType::i64, {3}, {0, 10, -1});
    kernels::cross_entropy_forward(c.queue, c.output(DType::f32, {3}, 10), c.output(DType::f32, {2, 3}, 10),
                                   View::none(), c.random(DType::f32, {3, 10}), target, {});
  });
}

}  // namespace
}  // namespace weft::tests
