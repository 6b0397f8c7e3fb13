// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/fft.h"

#include <complex>
#include <cstddef>
#include <numbers>

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

struct Lines {
  int64_t rows, n, columns;
  size_t at(int64_t row, int64_t k, int64_t column, int64_t length) const {
    return static_cast<size_t>((row * length + k) * columns + column);
  }
};

/// The sums of the contract over complex x [R, n, C].
std::vector<std::complex<double>> sums(const std::vector<std::complex<double>>& x, Lines of, double scale,
                                       double sign) {
  std::vector<std::complex<double>> y(x.size());
  for (int64_t row = 0; row < of.rows; ++row)
    for (int64_t column = 0; column < of.columns; ++column)
      for (int64_t k = 0; k < of.n; ++k)
        for (int64_t j = 0; j < of.n; ++j)
          y[of.at(row, k, column, of.n)] +=
              scale * x[of.at(row, j, column, of.n)] *
              std::polar(1.0,
                         sign * 2 * std::numbers::pi * static_cast<double>(j * k % of.n) / static_cast<double>(of.n));
  return y;
}

/// The first `length` elements of each line, as real and imaginary parts.
std::vector<double> parts(const std::vector<std::complex<double>>& x, Lines of, int64_t length) {
  std::vector<double> all(static_cast<size_t>(of.rows * length * of.columns * 2));
  for (int64_t row = 0; row < of.rows; ++row)
    for (int64_t k = 0; k < length; ++k)
      for (int64_t column = 0; column < of.columns; ++column) {
        const std::complex<double> value = x[of.at(row, k, column, of.n)];
        all[2 * of.at(row, k, column, length)] = value.real();
        all[2 * of.at(row, k, column, length) + 1] = value.imag();
      }
  return all;
}

std::vector<std::complex<double>> complex_of(const std::vector<double>& parts) {
  std::vector<std::complex<double>> values;
  for (size_t i = 0; i < parts.size(); i += 2) values.emplace_back(parts[i], parts[i + 1]);
  return values;
}

/// The array after its first element: not at the address of a complex number.
kernels::View behind_the_first(const DeviceArray& array, Sizes sizes) {
  kernels::View view = DeviceArray(DeviceKind::cpu, array.view().dtype, std::move(sizes)).view();
  view.data = static_cast<std::byte*>(array.view().data) + size_of(view.dtype);
  return view;
}

class FftLines : public testing::TestWithParam<DeviceKind> {
 protected:
  void SetUp() override {
    if (!WEFT_HAVE_KISSFFT) GTEST_SKIP() << "needs a build with kissfft; this one has its stub";
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, FftLines, testing::ValuesIn(test_devices()),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(FftLines, EqualTheSums) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t n : {1, 2, 3, 8, 15, 53, 106})
      for (const auto& [rows, columns] : {std::pair{2, 3}, {1, 3}, {3, 1}}) {
        SCOPED_TRACE(testing::Message() << dtype << ' ' << rows << 'x' << n << 'x' << columns);
        const kernels::Queue queue = queue_on(GetParam());
        const Lines of{rows, n, columns};
        const int64_t half = n / 2 + 1;
        const Sizes whole{rows, n, columns, 2}, real{rows, n, columns}, halves{rows, half, columns, 2};
        const Tolerance allowed = tolerance(dtype, n);
        const std::vector<double> x = uniform(count_of(whole), dtype);
        const DeviceArray given(GetParam(), dtype, whole, x), y(GetParam(), dtype, whole);
        for (const bool inverse : {false, true}) {
          kernels::fft_lines(queue, y, given, 0.5, inverse);
          EXPECT_TRUE(near(y.host(), parts(sums(complex_of(x), of, 0.5, inverse ? 1 : -1), of, n), allowed));
        }
        EXPECT_EQ(given.host(), x);
        const std::vector<double> numbers = uniform(count_of(real), dtype);
        const DeviceArray real_x(GetParam(), dtype, real, numbers), z(GetParam(), dtype, halves);
        kernels::rfft_lines(queue, z, real_x, 2);
        std::vector<double> spectrum = parts(sums({numbers.begin(), numbers.end()}, of, 2, -1), of, half);
        EXPECT_TRUE(near(z.host(), spectrum, allowed));
        for (int64_t row = 0; row < rows; ++row)  // imaginary parts that count for nothing
          for (const int64_t k : {int64_t{0}, n / 2})
            if (k == 0 || 2 * k == n) spectrum[2 * of.at(row, k, columns - 1, half) + 1] = 100;
        const DeviceArray back(GetParam(), dtype, real), from(GetParam(), dtype, halves, spectrum);
        const std::vector<double> before = from.host();
        kernels::irfft_lines(queue, back, from, 0.5 / static_cast<double>(n));
        EXPECT_TRUE(near(back.host(), numbers, allowed.times(2)));
        EXPECT_EQ(from.host(), before);
      }
}

TEST_P(FftLines, BeginAtAnyElement) {
  const Lines of{2, 8, 1};
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> x = uniform(33, dtype);
    const std::vector<double> inner(x.begin() + 1, x.end()), real(x.begin() + 1, x.begin() + 17);
    const DeviceArray given(GetParam(), dtype, {33}, x), y(GetParam(), dtype, {2, 8, 1, 2}),
        z(GetParam(), dtype, {2, 5, 1, 2});
    kernels::fft_lines(queue_on(GetParam()), y, behind_the_first(given, {2, 8, 1, 2}), 1, false);
    EXPECT_TRUE(near(y.host(), parts(sums(complex_of(inner), of, 1, -1), of, 8), tolerance(dtype, 8)));
    kernels::rfft_lines(queue_on(GetParam()), z, behind_the_first(given, {2, 8, 1}), 1);
    EXPECT_TRUE(near(z.host(), parts(sums({real.begin(), real.end()}, of, 1, -1), of, 5), tolerance(dtype, 8)));
  }
}

}  // namespace
}  // namespace weft::tests
