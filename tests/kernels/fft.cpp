// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fft.h"

#include <complex>
#include <numbers>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

constexpr int64_t kRows = 2, kColumns = 3;

/// The sums of the contract over complex x [R, n, C, 2].
std::vector<double> sums(const std::vector<double>& x, int64_t n, double scale, double sign) {
  std::vector<double> y(x.size());
  for (int64_t line = 0; line < kRows * kColumns; ++line)
    for (int64_t k = 0; k < n; ++k) {
      std::complex<double> sum;
      const auto at = [&](int64_t j) {
        return static_cast<size_t>(2 * ((line / kColumns * n + j) * kColumns + line % kColumns));
      };
      for (int64_t j = 0; j < n; ++j)
        sum += std::complex<double>(x[at(j)], x[at(j) + 1]) *
               std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
      y[at(k)] = scale * sum.real();
      y[at(k) + 1] = scale * sum.imag();
    }
  return y;
}

/// The first n/2 + 1 elements of each line.
std::vector<double> half_of(const std::vector<double>& y, int64_t n) {
  std::vector<double> half;
  const auto all = static_cast<size_t>(2 * n * kColumns), kept = static_cast<size_t>(2 * (n / 2 + 1) * kColumns);
  for (size_t row = 0; row < y.size(); row += all)
    for (size_t i = 0; i < kept; ++i) half.push_back(y[row + i]);
  return half;
}

TEST(FftLines, EqualTheSums) {
  if (!WEFT_HAVE_KISSFFT) GTEST_SKIP() << "needs a build with kissfft; this one has its stub";
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64})
      for (const int64_t n : {1, 2, 3, 8, 15, 53, 106}) {
        SCOPED_TRACE(::testing::Message() << dtype << ' ' << n);
        const kernels::Queue queue = queue_on(kind);
        const int64_t half = n / 2 + 1;
        const Tolerance allowed = tolerance(dtype, n);
        const std::vector<double> x = uniform(kRows * n * kColumns * 2, dtype);
        const DeviceArray given(kind, dtype, {kRows, n, kColumns, 2}, x), y(kind, dtype, {kRows, n, kColumns, 2});
        for (const bool inverse : {false, true}) {
          kernels::fft_lines(queue, y, given, 0.5, inverse);
          EXPECT_TRUE(near(y.host(), sums(x, n, 0.5, inverse ? 1 : -1), allowed));
        }
        const std::vector<double> real = uniform(kRows * n * kColumns, dtype);
        std::vector<double> as_complex;
        for (const double value : real) as_complex.insert(as_complex.end(), {value, 0});
        const DeviceArray real_x(kind, dtype, {kRows, n, kColumns}, real), z(kind, dtype, {kRows, half, kColumns, 2});
        kernels::rfft_lines(queue, z, real_x, 2);
        const std::vector<double> spectrum = half_of(sums(as_complex, n, 2, -1), n);
        EXPECT_TRUE(near(z.host(), spectrum, allowed));
        const DeviceArray back(kind, dtype, {kRows, n, kColumns});
        kernels::irfft_lines(queue, back, DeviceArray(kind, dtype, {kRows, half, kColumns, 2}, spectrum),
                             0.5 / static_cast<double>(n));
        EXPECT_TRUE(near(back.host(), real, allowed.times(2)));
      }
}

}  // namespace
}  // namespace weft::tests
