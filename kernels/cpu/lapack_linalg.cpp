// SPDX-License-Identifier: Apache-2.0
// Linear algebra by LAPACK, through its C interface (LAPACKE). The library is loaded at the first call: programs that
// factorise nothing start without it.
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/contracts/linalg.h"
#include "kernels/contracts/linalg_checks.h"
#include "kernels/runtime/shared_library.h"

namespace weft::kernels::cpu {
namespace {

// clang-format off
#define WEFT_LAPACK_FUNCTIONS(X) X(gesdd) X(syevd) X(geqrf) X(orgqr) X(potrf) X(getrf) X(getrs) X(trtrs)
// clang-format on

struct Lapack {
#define WEFT_LAPACK_MEMBER(name)                \
  decltype(&LAPACKE_s##name) s##name = nullptr; \
  decltype(&LAPACKE_d##name) d##name = nullptr;
  WEFT_LAPACK_FUNCTIONS(WEFT_LAPACK_MEMBER)
#undef WEFT_LAPACK_MEMBER
};

Lapack load_lapack() {
  const SharedLibrary shared(WEFT_LAPACKE_FILE, WEFT_LAPACKE_FOLDER);
  WEFT_CHECK(shared.handle, "linalg: cannot load ", WEFT_LAPACKE_FILE, " (", shared.error,
             "). On Debian: apt-get install liblapacke-dev; elsewhere put its folder into LD_LIBRARY_PATH");
  Lapack lapack;
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(shared.handle, name));
    WEFT_CHECK(function, "linalg: ", WEFT_LAPACKE_FILE, " has no ", name);
  };
#define WEFT_LAPACK_FIND(name)             \
  find(lapack.s##name, "LAPACKE_s" #name); \
  find(lapack.d##name, "LAPACKE_d" #name);
  WEFT_LAPACK_FUNCTIONS(WEFT_LAPACK_FIND)
#undef WEFT_LAPACK_FIND
  return lapack;
}

const Lapack& lapack() {
  static const Lapack library = load_lapack();
  return library;
}

// Calls of both precisions by one name.
#define WEFT_LAPACK_CALL(name)                                 \
  template <class T, class... Arguments>                       \
  lapack_int name(Arguments... arguments) {                    \
    if constexpr (std::is_same_v<T, float>)                    \
      return lapack().s##name(LAPACK_ROW_MAJOR, arguments...); \
    else                                                       \
      return lapack().d##name(LAPACK_ROW_MAJOR, arguments...); \
  }
WEFT_LAPACK_FUNCTIONS(WEFT_LAPACK_CALL)
#undef WEFT_LAPACK_CALL

template <class T>
void check_numbers(const char* op, const View& x, int64_t b, MatrixPart part = MatrixPart::all) {
  const int64_t rows = x.sizes[1], columns = x.sizes[2];
  const T* row = x.as<T>() + b * rows * columns;
  for (int64_t i = 0; i < rows; ++i, row += columns) {
    const int64_t begin = part == MatrixPart::upper ? i : 0, end = part == MatrixPart::lower ? i + 1 : columns;
    check_finite(op, std::all_of(row + begin, row + end, [](T value) { return std::isfinite(value); }), b, x);
  }
}

/// Calls body.operator()<T>(b) for each matrix, with the sizes' check and NaN's: LAPACK may not end with NaN.
template <class Body>
void each_matrix(const char* op, const View& x, std::initializer_list<const View*> others, const Body& body,
                 MatrixPart part = MatrixPart::all) {
  if (!has_matrices(op, x, others)) return;
  with_dtype<float, double>(x.dtype, op, [&]<class T>() {
    for (int64_t b = 0; b < x.sizes[0]; ++b) {
      check_numbers<T>(op, x, b, part);
      body.template operator()<T>(b);
    }
  });
}

template <class T>
T* matrix_of(const View& view, int64_t b) {
  return view.as<T>() + b * (view.numel() / view.sizes[0]);
}

/// A copy, since LAPACK overwrites its input.
template <class T>
std::vector<T> copy_of(const View& view, int64_t b) {
  const T* const from = matrix_of<T>(view, b);
  return {from, from + view.numel() / view.sizes[0]};
}

lapack_int size_of_dim(const View& view, int d) { return static_cast<lapack_int>(view.sizes[static_cast<size_t>(d)]); }

}  // namespace

void svd(const Queue&, const View& u, const View& s, const View& vh, const View& x) {
  each_matrix("svd", x, {&u, &s, &vh}, [&]<class T>(int64_t b) {
    std::vector<T> a = copy_of<T>(x, b);
    const lapack_int M = size_of_dim(x, 1), N = size_of_dim(x, 2), K = std::min(M, N);
    check_convergence(
        "svd", gesdd<T>('S', M, N, a.data(), N, matrix_of<T>(s, b), matrix_of<T>(u, b), K, matrix_of<T>(vh, b), N), b);
  });
}

void eigh(const Queue&, const View& w, const View& v, const View& x) {
  each_matrix(
      "eigh", x, {&w, &v},
      [&]<class T>(int64_t b) {
        const lapack_int N = size_of_dim(x, 1);
        T* const a = matrix_of<T>(v, b);
        std::copy_n(matrix_of<T>(x, b), static_cast<int64_t>(N) * N, a);
        check_convergence("eigh", syevd<T>('V', 'L', N, a, N, matrix_of<T>(w, b)), b);
      },
      MatrixPart::lower);
}

void qr(const Queue&, const View& q, const View& r, const View& x) {
  each_matrix("qr", x, {&q, &r}, [&]<class T>(int64_t b) {
    std::vector<T> a = copy_of<T>(x, b);
    const lapack_int M = size_of_dim(x, 1), N = size_of_dim(x, 2), K = std::min(M, N);
    std::vector<T> tau(static_cast<size_t>(K));
    check_parameters("qr", geqrf<T>(M, N, a.data(), N, tau.data()));
    T* const upper = matrix_of<T>(r, b);
    T* const columns = matrix_of<T>(q, b);
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < N; ++j) upper[i * N + j] = j < i ? T(0) : a[static_cast<size_t>(i * N + j)];
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < K; ++j) columns[i * K + j] = a[static_cast<size_t>(i * N + j)];
    check_parameters("qr", orgqr<T>(M, K, K, columns, K, tau.data()));
  });
}

void cholesky(const Queue&, const View& l, const View& x) {
  each_matrix(
      "cholesky", x, {&l},
      [&]<class T>(int64_t b) {
        const lapack_int N = size_of_dim(x, 1);
        const T* const from = matrix_of<T>(x, b);
        T* const lower = matrix_of<T>(l, b);
        for (int64_t i = 0; i < N; ++i)
          for (int64_t j = 0; j < N; ++j) lower[i * N + j] = j > i ? T(0) : from[i * N + j];
        check_positive(potrf<T>('L', N, lower, N), b);
      },
      MatrixPart::lower);
}

void lu(const Queue&, const View& lu, const View& parity, const View& x) {
  each_matrix("lu", x, {&lu, &parity}, [&]<class T>(int64_t b) {
    const lapack_int N = size_of_dim(x, 1);
    T* const a = matrix_of<T>(lu, b);
    std::copy_n(matrix_of<T>(x, b), static_cast<int64_t>(N) * N, a);
    std::vector<lapack_int> pivots(static_cast<size_t>(N));
    check_parameters("lu", getrf<T>(N, N, a, N, pivots.data()));  // a positive code: u has a 0, which is no error here
    T sign = 1;
    for (lapack_int i = 0; i < N; ++i)
      if (pivots[static_cast<size_t>(i)] != i + 1) sign = -sign;
    parity.as<T>()[b] = sign;
  });
}

void solve(const Queue&, const View& y, const View& a, const View& b) {
  each_matrix("solve", a, {&y, &b}, [&]<class T>(int64_t at) {
    std::vector<T> factors = copy_of<T>(a, at);
    const lapack_int N = size_of_dim(a, 1), K = size_of_dim(b, 2);
    std::vector<lapack_int> pivots(static_cast<size_t>(N));
    check_invertible(getrf<T>(N, N, factors.data(), N, pivots.data()), at);
    if (K == 0) return;
    check_numbers<T>("solve", b, at);
    T* const result = matrix_of<T>(y, at);
    std::copy_n(matrix_of<T>(b, at), static_cast<int64_t>(N) * K, result);
    check_parameters("solve", getrs<T>('N', N, K, factors.data(), N, pivots.data(), result, K));
  });
}

void triangular_solve(const Queue&, const View& y, const View& a, const View& b, bool upper) {
  each_matrix(
      "triangular_solve", a, {&y, &b},
      [&]<class T>(int64_t at) {
        const lapack_int N = size_of_dim(a, 1), K = size_of_dim(b, 2);
        if (K == 0) return;
        check_numbers<T>("triangular_solve", b, at);
        T* const result = matrix_of<T>(y, at);
        std::copy_n(matrix_of<T>(b, at), static_cast<int64_t>(N) * K, result);
        check_diagonal(trtrs<T>(upper ? 'U' : 'L', 'N', 'N', N, K, matrix_of<T>(a, at), N, result, K), at);
      },
      upper ? MatrixPart::upper : MatrixPart::lower);
}

}  // namespace weft::kernels::cpu
