// SPDX-License-Identifier: Apache-2.0
#include "core/ops/special.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "tests/ops/op_case.h"
#include "tests/support/error_text.h"

namespace weft::test {
namespace {

// clang-format off
const AddCases special_cases{
    {"erfc", {{{4, 7}}}, BOTH(erfc(x[0])), 4},
    {"erfc_far", {{{3, 5}, Values::positive}}, BOTH(erfc(4 * x[0])), 64},
    {"erfinv", {{{4, 7}, Values::unit}}, BOTH(erfinv(x[0])), 4},
    {"erfinv_near_one", {{{3, 5}, Values::positive}}, BOTH(erfinv(1 - 0.01 * x[0])), 64},
    {"lgamma", {{{4, 7}, Values::positive, Layout::transposed}}, BOTH(lgamma(x[0])), 4},
    {"lgamma_left", {{{3, 5}, Values::apart}}, BOTH(lgamma(x[0] + 0.06)), 16, false},
    {"digamma", {{{4, 7}, Values::positive, Layout::strided}}, BOTH(digamma(3 * x[0])), 8},
    {"digamma_left", {{{3, 5}, Values::apart}}, BOTH(digamma(x[0] + 0.06)), 16, false},
    {"polygamma", {{{3, 5}, Values::positive}}, BOTH(polygamma(2, x[0])), 16},
    {"polygamma_left", {{{3, 5}, Values::apart}}, BOTH(polygamma(1, x[0] + 0.06)), 16, false}};
// clang-format on

// Closed forms: of Euler's constant, of powers of pi and of zeta(3).
TEST(Special, KnownValues) {
  const auto check = [](const Tensor& y, const std::vector<double>& wanted) {
    const std::vector<double> got = y.to_vector<double>();
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i)
      if (std::isnan(wanted[i]))
        EXPECT_TRUE(std::isnan(got[i])) << i;
      else if (std::isinf(wanted[i]))
        EXPECT_EQ(got[i], wanted[i]) << i;
      else
        EXPECT_NEAR(got[i], wanted[i], 8 * 2.2e-16 * std::abs(wanted[i])) << i;
  };
  const auto at = [](const std::vector<double>& x) { return Tensor::from(x); };
  const double inf = std::numeric_limits<double>::infinity(), pi = M_PI, euler = 0.57721566490153286061,
               zeta_3 = 1.2020569031595942854;
  check(erfc(at({10, -10, 0, inf, NAN})), {2.0884875837625447570e-45, 2, 1, 0, NAN});
  check(erfinv(at({0, 1, -1, 1.5, -2, NAN, 0.5, -0.5, 1e-300, 1 - 0x1p-53})),
        {0, inf, -inf, NAN, NAN, NAN, 0.47693627620446987338, -0.47693627620446987338, std::sqrt(pi) / 2 * 1e-300,
         5.8635847487551676774});
  check(lgamma(at({0, -1, 1, 2, 0.5, -0.5, 1e10, inf, NAN})),
        {inf, inf, 0, 0, std::log(pi) / 2, std::log(2 * std::sqrt(pi)), 220258509288.81058, inf, NAN});
  check(digamma(at({0, -2, 1, 0.5, -1.5, 1e300, inf, -inf, NAN})),
        {-inf, NAN, -euler, -euler - 2 * std::log(2), 2 + 2 / 3.0 - euler - 2 * std::log(2), std::log(1e300), inf, NAN,
         NAN});
  check(polygamma(0, at({1})), {-euler});
  check(polygamma(1, at({1, 0.5, -0.5, 0, -3, inf, NAN})),
        {pi * pi / 6, pi * pi / 2, pi * pi / 2 + 4, inf, inf, 0, NAN});
  check(polygamma(2, at({1, 0.5, -0.5, -1})), {-2 * zeta_3, -14 * zeta_3, 16 - 14 * zeta_3, NAN});
  check(polygamma(3, at({1, 0.5, -1.5})),
        {std::pow(pi, 4) / 15, std::pow(pi, 4), std::pow(pi, 4) + 6 * (16 + 16 / 81.0)});
  check(polygamma(100, at({1})), {-std::tgamma(101)});  // zeta(101) is 1 + 2^-101
}

TEST(Special, Errors) {
  EXPECT_EQ(error_text([] { lgamma(Tensor::zeros({1}, DType::i64)); }),
            "lgamma: expected a floating tensor, got i64[1] on cpu");
  EXPECT_EQ(error_text([] { digamma({}); }), "digamma: expected a floating tensor, got none");
  for (const int order : {-1, 101})
    EXPECT_EQ(error_text([&] { polygamma(order, Tensor::zeros({1})); }),
              str("polygamma: expected an order from 0 to 100, got ", order));
}

}  // namespace
}  // namespace weft::test
