// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "emulator/cublas/dense.h"
#include "emulator/cublas/factorizations.h"

namespace emulator::blas {
namespace {

/// LAPACK's measure of a pivot.
template <class S>
auto size_of(const S& x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

/// P A = L U in place. `pivots`: rows from 0, or nullptr.
template <class S>
int factor(Dense<S>& a, int* pivots) {
  int info = 0;
  for (int64_t k = 0; k < a.columns; ++k) {
    S* const column = a.column(k);
    int64_t pivot = k;
    if (pivots) {
      for (int64_t i = k + 1; i < a.rows; ++i)
        if (size_of(column[i]) > size_of(column[pivot])) pivot = i;
      pivots[k] = static_cast<int>(pivot);
      if (pivot != k)
        for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(pivot, j));
    }
    if (column[k] == S(0)) {
      if (info == 0) info = static_cast<int>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < a.rows; ++i) column[i] /= column[k];
    for (int64_t j = k + 1; j < a.columns; ++j)
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= column[i] * a(k, j);
  }
  return info;
}

/// Row k and row pivots[k] change places, in this order or backwards.
template <class S>
void exchange(Dense<S>& b, const int* pivots, bool backwards) {
  for (int64_t step = 0; pivots && step < b.rows; ++step) {
    const int64_t k = backwards ? b.rows - 1 - step : step, other = pivots[k];
    if (other == k || other < 0 || other >= b.rows) continue;
    for (int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(other, j));
  }
}

/// The triangle of L and U; L has ones on its diagonal.
template <class S>
Dense<S> triangle(const Dense<S>& lu, bool upper) {
  Dense<S> t(lu.columns, lu.columns);
  for (int64_t j = 0; j < lu.columns; ++j) {
    for (int64_t i = upper ? 0 : j + 1; i < (upper ? j + 1 : lu.columns); ++i) t(i, j) = lu(i, j);
    if (!upper) t(j, j) = S(1);
  }
  return t;
}

/// op(A) X = B, for A = P^-1 L U.
template <class S>
void solve_factored(const Dense<S>& lu, const int* pivots, cublasOperation_t op, Dense<S>& b) {
  if (op == CUBLAS_OP_N) {
    exchange(b, pivots, false);
    solve(triangle(lu, false), false, b);
    solve(triangle(lu, true), true, b);
  } else {
    solve(triangle(lu, true).with(op), false, b);
    solve(triangle(lu, false).with(op), true, b);
    exchange(b, pivots, true);
  }
}

/// b = (I - tau v v^H) b, or with conj(tau), for rows from k on; v(k) = 1, and the others lie below (k, k) of a.
template <class S>
void reflect(const Dense<S>& a, int64_t k, S tau, Dense<S>& b, int64_t first_column) {
  for (int64_t j = first_column; j < b.columns; ++j) {
    S sum = b(k, j);
    for (int64_t i = k + 1; i < a.rows; ++i) sum += conjugate(a(i, k)) * b(i, j);
    sum *= tau;
    b(k, j) -= sum;
    for (int64_t i = k + 1; i < a.rows; ++i) b(i, j) -= a(i, k) * sum;
  }
}

/// LAPACK's geqrf: A = Q R with Q = H(0) H(1) …, H = I - tau v v^H.
template <class S>
std::vector<S> factor_qr(Dense<S>& a) {
  using R = typename Parts<S>::Real;
  std::vector<S> taus(static_cast<size_t>(std::min(a.rows, a.columns)));
  for (int64_t k = 0; k < static_cast<int64_t>(taus.size()); ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) below += static_cast<double>(std::norm(a(i, k)));
    const S alpha = a(k, k);
    if (below == 0 && std::imag(alpha) == R(0)) continue;  // H = I
    const R length = static_cast<R>(std::sqrt(below + static_cast<double>(std::norm(alpha))));
    const R beta = std::real(alpha) > R(0) ? -length : length;
    const S tau = (S(beta) - alpha) / S(beta);
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - S(beta);
    a(k, k) = S(beta);
    reflect(a, k, conjugate(tau), a, k + 1);
    taus[static_cast<size_t>(k)] = tau;
  }
  return taus;
}

/// The first zero on the diagonal, from 1; 0: none.
template <class S>
int zero_of_diagonal(const Dense<S>& a, int64_t n) {
  for (int64_t k = 0; k < n; ++k)
    if (a(k, k) == S(0)) return static_cast<int>(k + 1);
  return 0;
}

Matrix matrix_of(const char* name, const Argument& a, cudaDataType_t type, int64_t rows, int64_t columns) {
  require(a.step >= std::max<int64_t>(rows, 1), "the leading dimension of ", name, " is ", a.step,
          ", and a column has ", rows, " elements");
  return {a.at, type, rows, columns, a.step};
}
Matrix at(Matrix m, const Argument& array, int64_t i) {
  m.at = static_cast<const void* const*>(array.at)[i];
  return m;
}

Request begin(const char* name, cublasHandle_t handle, const Batch& b, int64_t m, int64_t columns = 0) {
  require(b.n >= 0 && b.count >= 0 && m >= 0 && columns >= 0, "a size is negative: ", m, ", ", b.n, ", ", columns, ", ",
          b.count);
  return {handle, cat(b.count, " of ", name, " of ", m, 'x', b.n, ' ', name_of(b.type))};
}
void array(Request& request, const char* name, const void* at, int64_t count) {
  request.memory(name, at, Use::read, static_cast<size_t>(count) * sizeof(void*));
}
void ints(Request& request, const char* name, const int* at, Use use, int64_t count) {
  request.memory(name, at, use, static_cast<size_t>(count) * sizeof(int));
}
/// Pivots of one matrix, from 0.
std::vector<int> pivots_of(const int* pivots, int64_t n, int64_t i) {
  std::vector<int> own(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) own[static_cast<size_t>(k)] = pivots ? pivots[i * n + k] - 1 : static_cast<int>(k);
  return own;
}

}  // namespace

void lu(const char* name, cublasHandle_t handle, const Batch& b, int* pivots, int* info) {
  Request request = begin(name, handle, b, b.n);
  const Matrix a = matrix_of("A", b.a, b.type, b.n, b.n);
  if (b.n == 0 || b.count == 0) return;
  array(request, "the array of A", b.a.at, b.count);
  if (pivots) ints(request, "the pivots", pivots, Use::write, b.n * b.count);
  ints(request, "info", info, Use::write, b.count);
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < b.count; ++i) {
      const Matrix ai = at(a, b.a, i);
      cuda::examine_late(call, {operand("A", ai, Use::update)});
      with_scalar(b.type, [&]<class S>(S) {
        Dense<S> all = load<S>(ai);
        int* const own = pivots ? pivots + i * b.n : nullptr;
        info[i] = factor(all, own);
        for (int64_t k = 0; own && k < b.n; ++k) ++own[k];
        store(ai, all);
      });
    }
  });
}

void solve_by_lu(const char* name, cublasHandle_t handle, const Batch& b, cublasOperation_t op, int64_t columns,
                 const int* pivots, Argument x, int* info) {
  require(info != nullptr, "info is NULL");
  *info = 0;
  require(op >= CUBLAS_OP_N && op <= CUBLAS_OP_C, "operation ", op, ": no such value");
  Request request = begin(name, handle, b, b.n, columns);
  const Matrix a = matrix_of("A", b.a, b.type, b.n, b.n), xs = matrix_of("B", x, b.type, b.n, columns);
  if (b.n == 0 || b.count == 0 || columns == 0) return;
  array(request, "the array of A", b.a.at, b.count);
  array(request, "the array of B", x.at, b.count);
  if (pivots) ints(request, "the pivots", pivots, Use::read, b.n * b.count);
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < b.count; ++i) {
      const Matrix ai = at(a, b.a, i), xi = at(xs, x, i);
      cuda::examine_late(call, {operand("A", ai, Use::read), operand("B", xi, Use::update)});
      with_scalar(b.type, [&]<class S>(S) {
        Dense<S> values = load<S>(xi);
        solve_factored(load<S>(ai), pivots_of(pivots, b.n, i).data(), op, values);
        store(xi, values);
      });
    }
  });
}

void invert(const char* name, cublasHandle_t handle, const Batch& b, bool factored, const int* pivots, Argument c,
            int* info) {
  Request request = begin(name, handle, b, b.n);
  require(factored || b.n <= 32, "n is ", b.n, ", and at most 32 are inverted so");
  const Matrix a = matrix_of("A", b.a, b.type, b.n, b.n), to = matrix_of("the inverse", c, b.type, b.n, b.n);
  if (b.n == 0 || b.count == 0) return;
  array(request, "the array of A", b.a.at, b.count);
  array(request, "the array of inverses", c.at, b.count);
  if (pivots) ints(request, "the pivots", pivots, Use::read, b.n * b.count);
  ints(request, "info", info, Use::write, b.count);
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < b.count; ++i) {
      const Matrix ai = at(a, b.a, i), ci = at(to, c, i);
      cuda::examine_late(call, {operand("A", ai, Use::read), operand("the inverse", ci, Use::write)});
      with_scalar(b.type, [&]<class S>(S) {
        Dense<S> all = load<S>(ai), inverse(b.n, b.n);
        std::vector<int> own = pivots_of(pivots, b.n, i);
        info[i] = factored ? zero_of_diagonal(all, b.n) : factor(all, own.data());
        if (info[i] != 0) return;
        for (int64_t k = 0; k < b.n; ++k) inverse(k, k) = S(1);
        solve_factored(all, own.data(), CUBLAS_OP_N, inverse);
        store(ci, inverse);
      });
    }
  });
}

void qr(const char* name, cublasHandle_t handle, int64_t m, const Batch& b, const void* tau, int* info) {
  require(info != nullptr, "info is NULL");
  *info = 0;
  Request request = begin(name, handle, b, m);
  const Matrix a = matrix_of("A", b.a, b.type, m, b.n);
  if (m == 0 || b.n == 0 || b.count == 0) return;
  array(request, "the array of A", b.a.at, b.count);
  array(request, "the array of tau", tau, b.count);
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < b.count; ++i) {
      const Matrix ai = at(a, b.a, i);
      const Vector taus{static_cast<const void* const*>(tau)[i], b.type, std::min(m, b.n), 1};
      cuda::examine_late(call, {operand("A", ai, Use::update), operand("tau", taus, Use::write)});
      with_scalar(b.type, [&]<class S>(S) {
        Dense<S> all = load<S>(ai);
        taus.store(factor_qr(all));
        store(ai, all);
      });
    }
  });
}

void least_squares(const char* name, cublasHandle_t handle, cublasOperation_t op, int64_t m, int64_t columns,
                   const Batch& b, Argument c, int* info, int* infos) {
  require(info != nullptr, "info is NULL");
  *info = 0;
  offer(op == CUBLAS_OP_N, "a transposed A is not offered");
  offer(m >= b.n, "A has ", m, " rows and ", b.n, " columns: fewer rows are not offered");
  Request request = begin(name, handle, b, m, columns);
  const Matrix a = matrix_of("A", b.a, b.type, m, b.n), cs = matrix_of("C", c, b.type, m, columns);
  if (b.n == 0 || b.count == 0 || columns == 0) return;
  array(request, "the array of A", b.a.at, b.count);
  array(request, "the array of C", c.at, b.count);
  if (infos) ints(request, "info of each matrix", infos, Use::write, b.count);
  request.run([=, call = request.call()] {
    for (int64_t i = 0; i < b.count; ++i) {
      const Matrix ai = at(a, b.a, i), ci = at(cs, c, i);
      cuda::examine_late(call, {operand("A", ai, Use::update), operand("C", ci, Use::update)});
      with_scalar(b.type, [&]<class S>(S) {
        Dense<S> all = load<S>(ai), values = load<S>(ci);
        const std::vector<S> taus = factor_qr(all);
        store(ai, all);
        const int zero = zero_of_diagonal(all, b.n);
        if (infos) infos[i] = zero;
        if (zero != 0) return;
        for (int64_t k = 0; k < b.n; ++k) reflect(all, k, conjugate(taus[static_cast<size_t>(k)]), values, 0);
        Dense<S> x(b.n, columns);
        for (int64_t j = 0; j < columns; ++j) std::copy_n(values.column(j), b.n, x.column(j));
        solve(triangle(all, true), true, x);
        for (int64_t j = 0; j < columns; ++j) std::copy_n(x.column(j), b.n, values.column(j));
        store(ci, values);
      });
    }
  });
}

}  // namespace emulator::blas

using namespace emulator::blas;

#define FOR_TYPE(L, T, type)                                                                                           \
  cublasStatus_t cublas##L##getrfBatched(cublasHandle_t h, int n, T* const A[], int lda, int* P, int* info,            \
                                         int count) {                                                                  \
    constexpr const char* kName = "cublas" #L "getrfBatched";                                                          \
    return call(kName, [&] { lu(kName, h, {n, {A, lda}, count, type}, P, info); });                                    \
  }                                                                                                                    \
  cublasStatus_t cublas##L##getrsBatched(cublasHandle_t h, cublasOperation_t op, int n, int columns,                   \
                                         const T* const A[], int lda, const int* P, T* const B[], int ldb, int* info,  \
                                         int count) {                                                                  \
    constexpr const char* kName = "cublas" #L "getrsBatched";                                                          \
    return call(kName, [&] { solve_by_lu(kName, h, {n, {A, lda}, count, type}, op, columns, P, {B, ldb}, info); });    \
  }                                                                                                                    \
  cublasStatus_t cublas##L##getriBatched(cublasHandle_t h, int n, const T* const A[], int lda, const int* P,           \
                                         T* const C[], int ldc, int* info, int count) {                                \
    constexpr const char* kName = "cublas" #L "getriBatched";                                                          \
    return call(kName, [&] { invert(kName, h, {n, {A, lda}, count, type}, true, P, {C, ldc}, info); });                \
  }                                                                                                                    \
  cublasStatus_t cublas##L##matinvBatched(cublasHandle_t h, int n, const T* const A[], int lda, T* const C[], int ldc, \
                                          int* info, int count) {                                                      \
    constexpr const char* kName = "cublas" #L "matinvBatched";                                                         \
    return call(kName, [&] { invert(kName, h, {n, {A, lda}, count, type}, false, nullptr, {C, ldc}, info); });         \
  }                                                                                                                    \
  cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t h, int m, int n, T* const A[], int lda, T* const tau[],        \
                                         int* info, int count) {                                                       \
    constexpr const char* kName = "cublas" #L "geqrfBatched";                                                          \
    return call(kName, [&] { qr(kName, h, m, {n, {A, lda}, count, type}, tau, info); });                               \
  }                                                                                                                    \
  cublasStatus_t cublas##L##gelsBatched(cublasHandle_t h, cublasOperation_t op, int m, int n, int columns,             \
                                        T* const A[], int lda, T* const C[], int ldc, int* info, int* infos,           \
                                        int count) {                                                                   \
    constexpr const char* kName = "cublas" #L "gelsBatched";                                                           \
    return call(kName, [&] {                                                                                           \
      least_squares(kName, h, op, m, columns, {n, {A, lda}, count, type}, {C, ldc}, info, infos);                      \
    });                                                                                                                \
  }

extern "C" {
FOR_TYPE(S, float, CUDA_R_32F)
FOR_TYPE(D, double, CUDA_R_64F)
FOR_TYPE(C, cuComplex, CUDA_C_32F)
FOR_TYPE(Z, cuDoubleComplex, CUDA_C_64F)
}  // extern "C"
