// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/activations.h"

#include "core/autograd.h"
#include "core/ops/reduce.h"
#include "tests/ops/op_case.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases activation_cases{
    {"relu6", {{{3, 30}, Values::apart}}, BOTH(relu6(x[0]))},
    {"hardtanh", {{{3, 9}, Values::apart}}, BOTH(hardtanh(x[0], -0.8, 1.1))},
    {"hardsigmoid", {{{3, 30}, Values::apart}}, BOTH(hardsigmoid(x[0]))},
    {"hardswish", {{{3, 30}, Values::apart}}, BOTH(hardswish(x[0]))},
    {"selu", {{{3, 9}, Values::apart}}, BOTH(selu(x[0]))},
    {"celu", {{{3, 9}, Values::apart}}, BOTH(celu(x[0], 0.7))},
    {"logsigmoid", {{{3, 9}}}, BOTH(logsigmoid(x[0]))},
    {"glu", {{{3, 8}}}, BOTH(glu(x[0]))},
    {"glu_of_rows", {{{4, 3}}}, BOTH(glu(x[0], 0))},
    {"prelu", {{{3, 5}, Values::apart}, {{5}}}, BOTH(prelu(x[0], x[1])), 3},
    {"prelu_of_one", {{{3, 5}, Values::apart}, {{1}}}, BOTH(prelu(x[0], x[1])), 15},
    {"softshrink", {{{3, 9}, Values::apart}}, BOTH(softshrink(x[0], 0.6))},
    {"hardshrink", {{{3, 9}, Values::apart}}, BOTH(hardshrink(x[0], 0.6))},
    {"tanhshrink", {{{3, 9}}}, BOTH(tanhshrink(x[0])), 8},
    {"threshold", {{{3, 9}, Values::apart}}, BOTH(threshold(x[0], 0.2, -3))}};
// clang-format on

TEST(Activations, SlopeOfCeluAtZeroIsOne) {
  Tensor x = Tensor::zeros({}).requires_grad_();
  celu(x).backward();
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Activations, OfALargeNumberAreNoInfinityTimesZero) { EXPECT_EQ(celu(Tensor::full({}, 1e6)).item(), 1e6); }

TEST(Activations, SayWhatIsWrong) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(error_text([&] { celu(x, 0); }), "celu: expected an alpha other than 0, got 0");
  EXPECT_EQ(error_text([&] { glu(x); }), "glu: expected an even size along dimension -1, got f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { prelu(x, Tensor::zeros({2})); }),
            "prelu: expected a weight [1] or of the last dimension's size, got f32[2] on cpu for f32[2,3] on cpu");
  EXPECT_EQ(error_text([&] { softshrink(x, -1); }), "softshrink: expected a bound of at least 0, got -1");
  EXPECT_EQ(error_text([] { relu6(Tensor::zeros({1}, DType::i64)); }),
            "relu6: expected a floating tensor, got i64[1] on cpu");
}

}  // namespace
}  // namespace weft::test
