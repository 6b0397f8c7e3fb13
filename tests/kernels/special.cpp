// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/special.h"

#include <cmath>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/random_values.h"
#include "tests/support/strided.h"

namespace weft::tests {
namespace {

using kernels::Special;

/// (-1)^(n + 1) n! of the sum of (x + k)^(-n - 1): 2,000 terms, and the rest by the integral, half a term and a slope.
double derivative_of_log_gamma(int n, double x) {
  constexpr int kTerms = 2000;
  double sum = 0;
  for (int k = kTerms; k-- > 0;) sum += std::pow(x + k, -n - 1);
  const double last = x + kTerms;
  sum += std::pow(last, -n) / n + std::pow(last, -n - 1) / 2 + (n + 1) / 12.0 * std::pow(last, -n - 2);
  return (n % 2 ? 1 : -1) * std::tgamma(n + 1) * sum;
}

/// Witnesses of x that share no formula with the kernels; y of erfinv is compared by its erf.
double reference(Special f, double x, int order) {
  constexpr double kStep = 1e-5;
  switch (f) {
    case Special::erfc:
      return std::erfc(x);
    case Special::lgamma:
      return std::lgamma(x);
    case Special::polygamma:
      return order > 0 ? derivative_of_log_gamma(order, x)
                       : (std::lgamma(x + kStep) - std::lgamma(x - kStep)) / (2 * kStep);
    default:
      return x;
  }
}

TEST(Special, EqualsReferenceInAnyLayout) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const auto& [f, order] : {std::pair{Special::erfc, 0},
                                     {Special::erfinv, 0},
                                     {Special::lgamma, 0},
                                     {Special::polygamma, 0},
                                     {Special::polygamma, 1},
                                     {Special::polygamma, 4}})
        for (const Layout from : {Layout::dense, Layout::permuted}) {
          const Sizes sizes{pick(1, 9), pick(1, 40)};
          SCOPED_TRACE(str("function ", static_cast<int>(f), " order ", order, " ", dtype, " on ", name(kind)));
          auto x = uniform(memory_for(sizes), dtype, 0.25, 2.75);
          const double centre = f == Special::erfc || f == Special::erfinv ? 1.5 : 0;
          for (double& v : x) v = rounded((v - centre) * (f == Special::erfinv ? 0.75 : 1), dtype);
          const DeviceArray source(kind, dtype, {memory_for(sizes)}, x), out(kind, dtype, sizes);
          const Strided in = strided(source, sizes, from);
          kernels::special_forward(queue_on(kind), f, out, in.view, order);
          std::vector<double> want, got = out.host();
          for (size_t i = 0; i < got.size(); ++i) want.push_back(reference(f, in.at(x, i), order));
          if (f == Special::erfinv)
            for (double& y : got) y = std::erf(y);
          Tolerance allowed = tolerance(dtype, 4);
          if (order == 0 && f == Special::polygamma) {  // differences lose half the digits
            allowed.norm = std::max(allowed.norm, 1e-9);
            allowed.largest = std::max(allowed.largest, 1e-8);
          }
          EXPECT_TRUE(near(got, want, allowed));
        }
}

TEST(Special, Errors) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray whole(kind, DType::i64, {3});
    EXPECT_NE(error_text([&] {
                kernels::special_forward(queue_on(kind), Special::erfc, whole, whole, 0);
              }).find("special_forward: expected"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace weft::tests
