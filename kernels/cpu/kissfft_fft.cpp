// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "emulator/cufft/transform.h"
#include "kernels/contracts/fft.h"
#include "kernels/contracts/fft_shape.h"
#include "kernels/cpu/parallel.h"

namespace weft::kernels::cpu {
namespace {

using emulator::fft::Complex;
using emulator::fft::Transform;
using emulator::fft::turn;

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
