// SPDX-License-Identifier: Apache-2.0
#include "emulator/cublas/vectors.h"

#include <cmath>

namespace emulator::blas {
namespace {

std::string text(const char* name, const Vector& x) { return cat(name, " of ", x.n, ' ', name_of(x.type)); }

void require_type(const Vector& x) { offer(bytes_of(x.type) != 0, "data type ", x.type, " is not offered"); }
/// Real and complex numbers do not mix, except real factors of complex vectors.
void require_alike(const Vector& x, cudaDataType_t type) {
  offer(bytes_of(type) != 0 && is_complex(x.type) == is_complex(type), "data types ", x.type, " and ", type,
        " are not offered together");
}
void require_factor(Given factor, cudaDataType_t type) {
  offer(!is_complex(factor.type) || is_complex(type), "a factor of data type ", factor.type, " is not offered with ", type);
}

/// Level 1 calls this the absolute value.
template <class S>
auto size_of_value(S x) {
  if constexpr (Parts<S>::kComplex)
    return std::abs(x.real()) + std::abs(x.imag());
  else
    return std::abs(x);
}

bool is_empty(const Vector& x) { return x.n <= 0; }

}  // namespace

void axpy(const char* name, cublasHandle_t handle, Given alpha, const Vector& x, const Vector& y, cudaDataType_t type) {
  require_type(x), require_type(y);
  require_alike(x, type), require_alike(y, type), require_factor(alpha, type);
  Request request(handle, text(name, x));
  if (is_empty(x)) return;
  const Factor factor = request.factor("alpha", alpha.at, alpha.type);
  request.vector("x", x, Use::read);
  request.vector("y", y, Use::update);
  request.may_be("x");
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      auto from = x.load<S>(), to = y.load<S>();
      const S a = factor.get<S>();
      for (size_t i = 0; i < to.size(); ++i) to[i] += a * from[i];
      y.store(to);
    });
  });
}

void scal(const char* name, cublasHandle_t handle, Given alpha, const Vector& x, cudaDataType_t type) {
  require_type(x), require_alike(x, type), require_factor(alpha, type);
  Request request(handle, text(name, x));
  if (is_empty(x) || x.step <= 0) return;
  const Factor factor = request.factor("alpha", alpha.at, alpha.type);
  request.vector("x", x, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      auto all = x.load<S>();
      const S a = factor.get<S>();
      for (S& value : all) value *= a;
      x.store(all);
    });
  });
}

void dot(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y, Given result, bool conjugates) {
  require_type(x), require_type(y), require_alike(x, y.type), require_alike(x, result.type);
  Request request(handle, text(name, x));
  if (!is_empty(x)) {
    request.vector("x", x, Use::read);
    request.vector("y", y, Use::read);
  }
  request.result(const_cast<void*>(result.at), bytes_of(result.type), [=](std::byte* to) {
    with_scalar(x.type, [&]<class S>(S) {
      using W = typename Parts<S>::Wide;
      W sum{};
      for (int64_t i = 0; i < x.n; ++i) {
        const W a = load<W>(x.type, x.element(i));
        sum += (conjugates ? conjugate(a) : a) * load<W>(y.type, y.element(i));
      }
      store(result.type, to, sum);
    });
  });
}

void norm(const char* name, cublasHandle_t handle, const Vector& x, Given result, Norm which) {
  require_type(x);
  offer(!is_complex(result.type), "a complex result is not offered");
  Request request(handle, text(name, x));
  const bool empty = is_empty(x) || x.step <= 0;
  if (!empty) request.vector("x", x, Use::read);
  request.result(const_cast<void*>(result.at), bytes_of(result.type), [=](std::byte* to) {
    long double sum = 0;
    for (int64_t i = 0; i < x.n && !empty; ++i) {
      const auto value = load<std::complex<double>>(x.type, x.element(i));
      const long double re = value.real(), im = value.imag();
      sum += which == Norm::euclidean ? re * re + im * im : std::abs(re) + std::abs(im);
    }
    store(result.type, to, static_cast<double>(which == Norm::euclidean ? std::sqrt(sum) : sum));
  });
}

void index_of(const char* name, cublasHandle_t handle, const Vector& x, void* result, size_t bytes, bool largest) {
  require_type(x);
  Request request(handle, text(name, x));
  const bool empty = is_empty(x) || x.step <= 0;
  if (!empty) request.vector("x", x, Use::read);
  request.result(result, bytes, [=](std::byte* to) {
    int64_t best = 0;
    double record = 0;
    for (int64_t i = 0; i < x.n && !empty; ++i) {
      const double size = size_of_value(load<std::complex<double>>(x.type, x.element(i)));
      if (best == 0 || (largest ? size > record : size < record)) best = i + 1, record = size;
    }
    bytes == sizeof(int) ? lt::store(to, static_cast<int>(best)) : lt::store(to, best);
  });
}

void copy(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y) {
  require_type(x), require_type(y);
  offer(x.type == y.type, "x of ", name_of(x.type), " and y of ", name_of(y.type));
  Request request(handle, text(name, x));
  if (is_empty(x)) return;
  request.vector("x", x, Use::read);
  request.vector("y", y, Use::write);
  request.run([=] {
    for (int64_t i = 0; i < x.n; ++i) std::memcpy(const_cast<std::byte*>(y.element(i)), x.element(i), bytes_of(x.type));
  });
}

void swap(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y) {
  require_type(x), require_type(y);
  offer(x.type == y.type, "x of ", name_of(x.type), " and y of ", name_of(y.type));
  Request request(handle, text(name, x));
  if (is_empty(x)) return;
  request.vector("x", x, Use::update);
  request.vector("y", y, Use::update);
  request.run([=] {
    for (int64_t i = 0; i < x.n; ++i)
      std::swap_ranges(const_cast<std::byte*>(x.element(i)), const_cast<std::byte*>(x.element(i)) + bytes_of(x.type),
                       const_cast<std::byte*>(y.element(i)));
  });
}

void rot(const char* name, cublasHandle_t handle, const Vector& x, const Vector& y, Given c, Given s,
         cudaDataType_t type) {
  require_type(x), require_type(y);
  require_alike(x, type), require_alike(y, type), require_factor(c, type), require_factor(s, type);
  Request request(handle, text(name, x));
  if (is_empty(x)) return;
  const Factor cosine = request.factor("c", c.at, c.type), sine = request.factor("s", s.at, s.type);
  request.vector("x", x, Use::update);
  request.vector("y", y, Use::update);
  request.run([=] {
    with_scalar(type, [&]<class S>(S) {
      const auto xs = x.load<S>(), ys = y.load<S>();
      auto new_x = xs, new_y = ys;
      const S a = cosine.get<S>(), b = sine.get<S>();
      for (size_t i = 0; i < xs.size(); ++i) {
        new_x[i] = a * xs[i] + b * ys[i];
        new_y[i] = a * ys[i] - conjugate(b) * xs[i];
      }
      x.store(new_x);
      y.store(new_y);
    });
  });
}

}  // namespace emulator::blas
