// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fourier transforms by kissfft's template, in f64. kissfft takes time n p for a prime factor p of n. Lengths with a
// large factor are therefore transformed by a convolution whose length is a power of two (Bluestein 1970). The
// framework's fft uses it, too.
#include <kissfft/kissfft.hh>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <numbers>
#include <vector>

namespace emulator::fft {

using Complex = std::complex<double>;

constexpr int64_t kLargestFactor = 50;

inline int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return std::max(largest, n);
}

/// e^(i pi numerator / denominator)
inline Complex turn(int64_t numerator, int64_t denominator) {
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

}  // namespace emulator::fft
