// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by kissfft's template, in f64. kissfft takes time n p for a prime factor p of n. Lengths with a
// large factor are therefore transformed by a convolution whose length is a power of two (Bluestein 1970).
#include <kissfft/kissfft.hh>

#include <cmath>
#include <complex>
#include <memory>
#include <numbers>
#include <vector>

#include "kernels/contracts/fft.h"
#include "kernels/contracts/fft_shape.h"
#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

using Complex = std::complex<double>;

constexpr int64_t kLargestFactor = 50;

int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

/// e^(i pi numerator / denominator)
Complex turn(int64_t numerator, int64_t denominator) {
  return std::polar(1.0, std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator));
}

/// A complex transform of n numbers. Its calls share a buffer: each thread needs a copy.
class Transform {
 public:
  Transform(int64_t n, bool inverse)
      : n_(n), short_(static_cast<size_t>(largest_factor(n) > kLargestFactor ? 1 : n), inverse) {
    if (largest_factor(n) <= kLargestFactor) return;
    int64_t length = 1;
    while (length < 2 * n - 1) length *= 2;
    const auto size = static_cast<size_t>(length);
    forward_ = std::make_shared<kissfft<double>>(size, false);
    backward_ = std::make_shared<kissfft<double>>(size, true);
    chirp_.resize(static_cast<size_t>(n));
    std::vector<Complex> filter(size);
    for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {  // square: k^2 mod 2n
      const Complex w = turn(inverse ? square : -square, n);
      chirp_[static_cast<size_t>(k)] = w;
      filter[static_cast<size_t>(k)] = filter[static_cast<size_t>((length - k) % length)] = std::conj(w);
    }
    filter_.resize(size);
    forward_->transform(filter.data(), filter_.data());
    for (Complex& value : filter_) value /= static_cast<double>(length);
    padded_.resize(size);
    spectrum_.resize(size);
  }

  /// `in` and `out` do not overlap.
  void operator()(const Complex* in, Complex* out) {
    if (chirp_.empty()) return short_.transform(in, out);
    std::fill(padded_.begin(), padded_.end(), Complex{});
    for (size_t k = 0; k < chirp_.size(); ++k) padded_[k] = in[k] * chirp_[k];
    forward_->transform(padded_.data(), spectrum_.data());
    for (size_t k = 0; k < spectrum_.size(); ++k) spectrum_[k] *= filter_[k];
    backward_->transform(spectrum_.data(), padded_.data());
    for (size_t k = 0; k < chirp_.size(); ++k) out[k] = padded_[k] * chirp_[k];
  }

  int64_t n() const { return n_; }

 private:
  int64_t n_;
  kissfft<double> short_;
  std::shared_ptr<const kissfft<double>> forward_, backward_;  // powers of two need no buffer
  std::vector<Complex> chirp_, filter_, padded_, spectrum_;
};

/// Calls body(transform, row, column) for each line; `transform` is the thread's own.
template <class Body>
void each_line(const FftShape& shape, const Transform& transform, const Body& body) {
  parallel_for(shape.rows * shape.columns, 8 * shape.n, [&](int64_t begin, int64_t end) {
    Transform own = transform;
    std::vector<Complex> in(static_cast<size_t>(shape.n + 1)), out(static_cast<size_t>(shape.n + 1));
    for (int64_t line = begin; line < end; ++line)
      body(own, in.data(), out.data(), line / shape.columns, line % shape.columns);
  });
}

template <class T>
Complex complex_at(const T* data, int64_t at) {
  return {static_cast<double>(data[2 * at]), static_cast<double>(data[2 * at + 1])};
}
template <class T>
void put_complex(T* data, int64_t at, Complex value) {
  data[2 * at] = static_cast<T>(value.real());
  data[2 * at + 1] = static_cast<T>(value.imag());
}

}  // namespace

void fft_lines(const Queue&, const View& y, const View& x, double scale, bool inverse) {
  const FftShape shape = fft_shape("fft", y, x, x, false, false);
  const auto [rows, n, columns] = shape;
  with_dtype<float, double>(x.dtype, "fft", [&, n = n, columns = columns]<class T>() {
    each_line(shape, Transform(n, inverse), [&](Transform& run, Complex* in, Complex* out, int64_t row, int64_t c) {
      for (int64_t k = 0; k < n; ++k) in[k] = complex_at(x.as<T>(), (row * n + k) * columns + c);
      run(in, out);
      for (int64_t k = 0; k < n; ++k) put_complex(y.as<T>(), (row * n + k) * columns + c, scale * out[k]);
    });
  });
}

// A real line of even length is transformed as a complex line of half the length: z[m] = x[2m] + i x[2m + 1].

void rfft_lines(const Queue&, const View& y, const View& x, double scale) {
  const FftShape shape = fft_shape("rfft", y, x, x, true, false);
  const auto [rows, n, columns] = shape;
  const int64_t half = shape.half();
  const bool even = n % 2 == 0;
  std::vector<Complex> turns;
  for (int64_t k = 0; even && k < half; ++k) turns.push_back(turn(-2 * k, n));
  with_dtype<float, double>(x.dtype, "rfft", [&, n = n, columns = columns]<class T>() {
    each_line(shape, Transform(even ? n / 2 : n, false),
              [&](Transform& run, Complex* in, Complex* out, int64_t row, int64_t c) {
                const auto at = [&](int64_t j) { return static_cast<double>(x.as<T>()[(row * n + j) * columns + c]); };
                const int64_t m = run.n();
                for (int64_t j = 0; j < m; ++j) in[j] = even ? Complex(at(2 * j), at(2 * j + 1)) : Complex(at(j));
                run(in, out);
                for (int64_t k = 0; k < half; ++k) {
                  Complex value = out[k % m];
                  if (even) {
                    const Complex a = out[k % m], b = std::conj(out[(m - k) % m]);
                    value = 0.5 * (a + b) + turns[static_cast<size_t>(k)] * Complex(0, -0.5) * (a - b);
                  }
                  if (k == 0 || 2 * k == n) value.imag(0);
                  put_complex(y.as<T>(), (row * half + k) * columns + c, scale * value);
                }
              });
  });
}

void irfft_lines(const Queue&, const View& y, const View& x, double scale) {
  const FftShape shape = fft_shape("irfft", y, x, y, false, true);
  const auto [rows, n, columns] = shape;
  const int64_t half = shape.half();
  const bool even = n % 2 == 0;
  std::vector<Complex> turns;
  for (int64_t k = 0; even && k < half; ++k) turns.push_back(Complex(0, 1) * turn(2 * k, n));
  with_dtype<float, double>(x.dtype, "irfft", [&, n = n, columns = columns]<class T>() {
    each_line(shape, Transform(even ? n / 2 : n, true),
              [&](Transform& run, Complex* in, Complex* out, int64_t row, int64_t c) {
                const auto at = [&](int64_t k) {
                  const Complex value = complex_at(x.as<T>(), (row * half + k) * columns + c);
                  return k == 0 || 2 * k == n ? Complex(value.real()) : value;
                };
                const int64_t m = run.n();
                for (int64_t k = 0; k < m; ++k) {
                  if (even) {
                    const Complex a = at(k), b = std::conj(at(m - k));
                    in[k] = a + b + turns[static_cast<size_t>(k)] * (a - b);
                  } else {
                    in[k] = k < half ? at(k) : std::conj(at(n - k));
                  }
                }
                run(in, out);
                for (int64_t j = 0; j < n; ++j) {
                  const double value = !even ? out[j].real() : j % 2 ? out[j / 2].imag() : out[j / 2].real();
                  y.as<T>()[(row * n + j) * columns + c] = static_cast<T>(scale * value);
                }
              });
  });
}

}  // namespace weft::kernels::cpu
