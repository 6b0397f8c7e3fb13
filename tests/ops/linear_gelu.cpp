// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/linear.h"

#include <gtest/gtest.h>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace weft {
namespace {

double distance(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

TEST(LinearGelu, IsGeluOfLinear) {
  for (const Gelu approximate : {Gelu::erf, Gelu::tanh}) {
    const auto leaf = [](const Shape& sizes) { return normal(sizes).to(DType::f64).requires_grad_(); };
    const Tensor x = leaf({4, 6}), w = leaf({3, 6}), b = leaf({3}), dy = normal({4, 3}).to(DType::f64);
    const Tensor want = gelu(linear(x, w, b), approximate);
    want.backward(dy);
    const Tensor dx = x.grad().clone(), dw = w.grad().clone(), db = b.grad().clone();
    for (const Tensor& t : {x, w, b}) t.grad().fill_(0);
    const Tensor got = linear_gelu(x, w, b, approximate);
    got.backward(dy);
    EXPECT_LT(distance(got, want), 1e-14);
    EXPECT_LT(distance(x.grad(), dx), 1e-13);
    EXPECT_LT(distance(w.grad(), dw), 1e-13);
    EXPECT_LT(distance(b.grad(), db), 1e-13);
  }
}

}  // namespace
}  // namespace weft
