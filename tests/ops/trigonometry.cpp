// SPDX-License-Identifier: Apache-2.0
#include "core/ops/trigonometry.h"

#include <cmath>
#include <limits>

#include "core/autograd.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases trigonometry_cases{
    {"tan", {{{3, 5}, Values::unit}}, BOTH(tan(x[0])), 8},
    {"asin", {{{3, 5}, Values::unit}}, BOTH(asin(x[0])), 8},
    {"acos", {{{3, 5}, Values::unit}}, BOTH(acos(x[0])), 8},
    {"atan", {{{3, 5}}}, BOTH(atan(x[0])), 8},
    {"sinh", {{{3, 5}}}, BOTH(sinh(x[0])), 8},
    {"cosh", {{{3, 5}}}, BOTH(cosh(x[0])), 8},
    {"asinh", {{{3, 5}, Values::apart}}, BOTH(asinh(x[0])), 8},
    {"acosh", {{{3, 5}, Values::positive}}, BOTH(acosh(affine(x[0], 1, 1))), 8},
    {"atanh", {{{3, 5}, Values::unit}}, BOTH(atanh(x[0])), 8},
    {"exp2", {{{3, 5}}}, BOTH(exp2(x[0])), 8},
    {"log2", {{{3, 5}, Values::positive}}, BOTH(log2(x[0])), 8},
    {"log10", {{{3, 5}, Values::positive}}, BOTH(log10(x[0])), 8},
    {"trunc", {{{3, 9}, Values::apart}}, BOTH(trunc(x[0]))}};
// clang-format on

struct Function {
  const char* name;
  Tensor (*f)(const Tensor&);
  double (*reference)(double);
  std::vector<double> at;
};

// The C library's functions, also far out and near 0.
TEST(Trigonometry, EqualsTheCLibrary) {
  const std::vector<double> small{1e-30, -1e-5, 0.3, -0.9, 0.999}, all{1e-30, -1e-5, 0.3, -2, 7, -40, 80};
  const std::vector<double> positive{1e-30, 1e-5, 0.3, 1, 8, 1e5, 1e30};
  const std::vector<Function> functions{{"tan", tan, std::tan, all},
                                        {"asin", asin, std::asin, small},
                                        {"acos", acos, std::acos, small},
                                        {"atan", atan, std::atan, all},
                                        {"sinh", sinh, std::sinh, all},
                                        {"cosh", cosh, std::cosh, all},
                                        {"asinh", asinh, std::asinh, all},
                                        {"acosh", acosh, std::acosh, {1, 1.0001, 2, 30, 1e5}},
                                        {"atanh", atanh, std::atanh, small},
                                        {"exp2", exp2, std::exp2, {-80, -1, 0, 0.5, 3, 80}},
                                        {"log2", log2, std::log2, positive},
                                        {"log10", log10, std::log10, positive},
                                        {"trunc", trunc, std::trunc, {-2.5, -2, -0.5, 0, 0.5, 2, 2.5, 1e30}}};
  for (const Function& one : functions)
    for (const DType dtype : {DType::f64, DType::f32}) {
      const std::vector<double> x = Tensor::from(one.at).to(dtype).to(DType::f64).to_vector<double>();
      const std::vector<double> y = one.f(Tensor::from(one.at).to(dtype)).to(DType::f64).to_vector<double>();
      const double eps = dtype == DType::f64 ? 2.2e-16 : 1.2e-7;
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(y[i], one.reference(x[i]), 8 * eps * std::abs(one.reference(x[i]))) << one.name << " of " << x[i];
    }
  const double far = 1e200, infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(asinh(Tensor::from<double>({far, -far, infinity, -infinity})).to_vector<double>(),
            (std::vector<double>{std::asinh(far), -std::asinh(far), infinity, -infinity}));
  EXPECT_EQ(acosh(Tensor::from<double>({far, infinity})).to_vector<double>(),
            (std::vector<double>{std::acosh(far), infinity}));
  EXPECT_NEAR(asinh(Tensor::full({}, 2e19)).item(), std::asinh(2e19), 1e-5);
  for (const double below : {0.5, -2.0, -5000.0, -2e7, -2e19})
    EXPECT_TRUE(std::isnan(acosh(Tensor::full({}, below)).item())) << below;
  EXPECT_EQ(error_text([] { tan(Tensor::zeros({1}, DType::i64)); }),
            "tan: expected a floating tensor, got i64[1] on cpu");
}

TEST(Trigonometry, SlopesAreInfiniteAtTheEnds) {
  const auto slope = [](Tensor (*f)(const Tensor&), float at) {
    Tensor x = Tensor::full({}, at).requires_grad_();
    f(x).backward();
    return x.grad().item();
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(slope(asin, 1), kInfinity);
  EXPECT_EQ(slope(asin, -1), kInfinity);
  EXPECT_EQ(slope(acos, 1), -kInfinity);
  EXPECT_EQ(slope(acosh, 1), kInfinity);
  EXPECT_EQ(slope(atanh, 1), kInfinity);
  EXPECT_EQ(slope(asinh, 0), 1);
}

}  // namespace
}  // namespace weft::test
