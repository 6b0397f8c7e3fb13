// SPDX-License-Identifier: Apache-2.0
#include "core/check_gradient.h"

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/ops/unary.h"
#include "core/random.h"
#include "tests/support/error_text.h"

namespace weft {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// x^2 whose gradient is `factor` x.
Tensor square(const Tensor& x, double factor) {
  const Tensor y = mul(x.detach(), x.detach());
  return differentiable(y, "square", {x},
                        [x = Saved(x), factor](const Tensor& dy) { return Grads{mul(mul(dy, x), factor)}; });
}

Tensor leaf(DType dtype) {
  manual_seed(3);
  return normal({3, 5}, 0, 1, dtype).requires_grad_();
}

TEST(CheckGradient, IsSilentOnRightOnes) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    check_gradient([](const auto& x) { return square(x[0], 2); }, {leaf(dtype)});
    check_gradient([](const auto& x) { return mul(exp(x[0]), x[1]); }, {leaf(dtype), leaf(dtype)});
  }
  check_gradient([](const auto& x) { return dropout(x[0], 0.5); }, {leaf(DType::f64)});
}

TEST(CheckGradient, NamesTheInputOfAWrongOne) {
  EXPECT_THAT(
      error_text([] {
        check_gradient([](const auto& x) { return mul(x[0], square(x[1], 2.001)); },
                       {leaf(DType::f64), leaf(DType::f64)});
      }),
      AllOf(HasSubstr("check_gradient: input 1, probe 0: expected a gradient of"), HasSubstr("by differences, got")));
  EXPECT_THAT(error_text([] { check_gradient([](const auto& x) { return square(x[0], 2.1); }, {leaf(DType::f32)}); }),
              HasSubstr("input 0"));
}

TEST(CheckGradient, RefusesWhatItCannotCheck) {
  const auto twice = [](const std::vector<Tensor>& x) { return mul(x[0], 2); };
  EXPECT_THAT(error_text([&] { check_gradient(twice, {leaf(DType::f64).detach()}); }),
              HasSubstr("no input requires a gradient"));
  EXPECT_THAT(error_text([&] { check_gradient(twice, {leaf(DType::bf16)}); }),
              HasSubstr("expected inputs of f64 or f32, got"));
  EXPECT_THAT(error_text([] { check_gradient([](const auto& x) { return x[0].detach(); }, {leaf(DType::f64)}); }),
              HasSubstr("does not depend on the inputs"));
  EXPECT_THAT(error_text([] {
                check_gradient([](const auto& x) { return mul(x[0], 2); }, {leaf(DType::f64), leaf(DType::f64)});
              }),
              HasSubstr("no gradient for input 1"));
}

}  // namespace
}  // namespace weft
