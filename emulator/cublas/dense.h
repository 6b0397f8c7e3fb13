// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include "emulator/cublas/request.h"

namespace emulator::blas {

/// A matrix in the type of the arithmetic, column by column without gaps.
template <class S>
struct Dense {
  int64_t rows = 0, columns = 0;
  std::vector<S> values;

  Dense(int64_t m, int64_t n) : rows(m), columns(n), values(static_cast<size_t>(m * n)) {}
  S* column(int64_t j) { return values.data() + j * rows; }
  const S* column(int64_t j) const { return values.data() + j * rows; }
  S& operator()(int64_t i, int64_t j) { return column(j)[i]; }
  const S& operator()(int64_t i, int64_t j) const { return column(j)[i]; }

  Dense transposed(bool conjugates = false) const {
    Dense other(columns, rows);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) other(j, i) = conjugates ? conjugate((*this)(i, j)) : (*this)(i, j);
    return other;
  }
  Dense with(cublasOperation_t op) && {
    if (op == CUBLAS_OP_N) return std::move(*this);
    return transposed(op == CUBLAS_OP_C);
  }
};

/// The part of the matrix that its fill mode names; the rest is 0.
template <class S>
Dense<S> load(const Matrix& m) {
  Dense<S> all(m.rows, m.columns);
  for (int64_t j = 0; j < m.columns; ++j)
    for (int64_t i = m.first(j); i < m.end(j); ++i) all(i, j) = load<S>(m.type, m.element(i, j));
  return all;
}
template <class S>
void store(const Matrix& m, const Dense<S>& all) {
  for (int64_t j = 0; j < m.columns; ++j)
    for (int64_t i = m.first(j); i < m.end(j); ++i) store(m.type, const_cast<std::byte*>(m.element(i, j)), all(i, j));
}

/// A triangle, with ones on its diagonal if `unit`.
template <class S>
Dense<S> load_triangle(const Matrix& m) {
  Dense<S> all = load<S>(m);
  if (m.unit)
    for (int64_t i = 0; i < m.rows; ++i) all(i, i) = S(1);
  return all;
}
/// Both triangles from one.
template <class S>
Dense<S> load_symmetric(const Matrix& m, bool hermitian) {
  Dense<S> all = load<S>(m);
  for (int64_t j = 0; j < m.columns; ++j) {
    for (int64_t i = m.first(j); i < m.end(j); ++i) all(j, i) = hermitian ? conjugate(all(i, j)) : all(i, j);
    if (hermitian) all(j, j) = S(std::real(all(j, j)));
  }
  return all;
}

/// A B.
template <class S>
Dense<S> product(const Dense<S>& a, const Dense<S>& b) {
  Dense<S> c(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; ++j)
    for (int64_t k = 0; k < a.columns; ++k) {
      const S factor = b(k, j);
      const S* const from = a.column(k);
      S* const to = c.column(j);
      for (int64_t i = 0; i < a.rows; ++i) to[i] += from[i] * factor;
    }
  return c;
}

/// The diagonal of a Hermitian matrix is real.
template <class S>
void make_diagonal_real(const Matrix& c) {
  for (int64_t i = 0; i < c.rows; ++i) {
    auto* const at = const_cast<std::byte*>(c.element(i, i));
    store(c.type, at, S(std::real(load<S>(c.type, at))));
  }
}

/// C = alpha X + beta C; C is not read if beta is 0.
template <class S>
void finish(const Matrix& c, S alpha, const Dense<S>& x, S beta) {
  for (int64_t j = 0; j < c.columns; ++j)
    for (int64_t i = c.first(j); i < c.end(j); ++i) {
      auto* const at = const_cast<std::byte*>(c.element(i, j));
      S value = alpha * x(i, j);
      if (beta != S(0)) value += beta * load<S>(c.type, at);
      store(c.type, at, value);
    }
}
template <class S>
void finish(const Vector& y, S alpha, const Dense<S>& x, S beta) {
  for (int64_t i = 0; i < y.n; ++i) {
    auto* const at = const_cast<std::byte*>(y.element(i));
    S value = alpha * x(i, 0);
    if (beta != S(0)) value += beta * load<S>(y.type, at);
    store(y.type, at, value);
  }
}
/// A vector as a column.
template <class S>
Dense<S> column(const Vector& v) {
  Dense<S> all(v.n, 1);
  all.values = v.load<S>();
  return all;
}

/// T X = B for a triangle T; B becomes X.
template <class S>
void solve(const Dense<S>& t, bool upper, Dense<S>& b) {
  const int64_t n = t.rows;
  for (int64_t j = 0; j < b.columns; ++j) {
    S* const x = b.column(j);
    for (int64_t step = 0; step < n; ++step) {
      const int64_t k = upper ? n - 1 - step : step;
      const S* const from = t.column(k);
      const S value = x[k] = x[k] / from[k];
      for (int64_t i = upper ? 0 : k + 1; i < (upper ? k : n); ++i) x[i] -= from[i] * value;
    }
  }
}

}  // namespace emulator::blas
