// SPDX-License-Identifier: Apache-2.0
// cuSOLVER's factorisations of real matrices by LAPACK, in stream order.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "emulator/cusolver/request.h"

namespace emulator::solver {

/// LAPACK's call, first for its best workspace.
template <class T, class F>
void with_work(const F& run) {
  T best = 0;
  Int count = -1;
  run(&best, &count);
  count = std::max(static_cast<Int>(best), 1);
  std::vector<T> work(static_cast<size_t>(count));
  run(work.data(), &count);
}

/// LAPACK's syevd.
template <class T>
Int eigen(const lapack::Functions<T>& lapack, cusolverEigMode_t job, Part part, Int n, T* a, Int lda, T* w) {
  Int info = 0, count = 1 + 6 * n + 2 * n * n, int_count = 3 + 5 * n;
  std::vector<T> work(static_cast<size_t>(count));
  std::vector<Int> ints(static_cast<size_t>(int_count));
  lapack.syevd(job == CUSOLVER_EIG_MODE_VECTOR ? "V" : "N", part == Part::lower ? "L" : "U", &n, a, &lda, w,
               work.data(), &count, ints.data(), &int_count, &info, 1, 1);
  return info;
}

inline cusolverStatus_t jacobi_size(const char* name, cusolverDnHandle_t handle, int n, int* numbers, int count) {
  return call(name, [&] {
    context_of(handle);
    require(numbers, "the result is NULL");
    require(n >= 0 && count >= 0, "a size is negative");
    *numbers = std::max(n * count, 1);
  });
}

template <class T>
cusolverStatus_t syevj(const char* name, cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t fill, int n,
                       T* a, int lda, T* w, T* work, int numbers, int* info, syevjInfo_t options, int count) {
  return call(name, [&] {
    require(n >= 0 && count >= 0 && options, "a size is negative, or the options are NULL");
    step("A", lda, n);
    const Part part = part_of(fill);
    Request<T> request(handle, name, n, n);
    request.matrix("A", a, Use::write, n, n, lda, Part::all, count);
    request.may_be("the triangles of A");
    request.matrix("the triangles of A", a, Use::read, n, n, lda, part, count);
    request.memory("W", w, Use::write, static_cast<size_t>(n) * static_cast<size_t>(count) * sizeof(T));
    request.workspace(work, static_cast<size_t>(numbers) * sizeof(T),
                      static_cast<size_t>(std::max(n * count, 1)) * sizeof(T));
    request.run(
        info,
        [=](const lapack::Functions<T>& lapack, int64_t b) {
          return eigen(lapack, job, part, n, a + b * lda * n, lda, w + b * n);
        },
        count);
  });
}

template <class T>
cusolverStatus_t gesvdj(const char* name, cusolverDnHandle_t handle, cusolverEigMode_t job, int m, int n, T* a, int lda,
                        T* s, T* u, int ldu, T* v, int ldv, T* work, int numbers, int* info, gesvdjInfo_t options,
                        int count) {
  return call(name, [&] {
    require(m <= 32 && n <= 32, "A is ", m, 'x', n, ", and has at most 32 rows and columns");
    require(m >= 0 && n >= 0 && count >= 0 && options, "a size is negative, or the options are NULL");
    offer(job == CUSOLVER_EIG_MODE_VECTOR, "values without vectors are not emulated");
    step("A", lda, m), step("U", ldu, m), step("V", ldv, n);
    const Int K = std::min(m, n);
    Request<T> request(handle, name, m, n);
    request.matrix("A", a, Use::update, m, n, lda, Part::all, count);
    request.memory("S", s, Use::write, static_cast<size_t>(K) * static_cast<size_t>(count) * sizeof(T));
    request.matrix("U", u, Use::write, m, m, ldu, Part::all, count);
    request.matrix("V", v, Use::write, n, n, ldv, Part::all, count);
    request.workspace(work, static_cast<size_t>(numbers) * sizeof(T),
                      static_cast<size_t>(std::max(n * count, 1)) * sizeof(T));
    request.run(
        info,
        [=](const lapack::Functions<T>& lapack, int64_t b) {
          Int code = 0;
          std::vector<T> vt(static_cast<size_t>(n * n));
          with_work<T>([&](T* own, const Int* size) {
            lapack.gesvd("A", "A", &m, &n, a + b * lda * n, &lda, s + b * K, u + b * ldu * m, &ldu, vt.data(), &n, own,
                         size, &code, 1, 1);
          });
          for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j) v[b * ldv * n + j * ldv + i] = vt[static_cast<size_t>(i * n + j)];
          return code;
        },
        count);
  });
}

template <class T>
void potrf(const char* name, cusolverDnHandle_t handle, cublasFillMode_t fill, int64_t n, T* a, int64_t lda, void* work,
           size_t bytes, int* info) {
  const Int count = size("n", n), columns = step("A", lda, n);
  const Part part = part_of(fill);
  Request<T> request(handle, name, n, n);
  request.matrix("A", a, Use::update, n, n, lda, part);
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    lapack.potrf(part == Part::lower ? "L" : "U", &count, a, &columns, &code, 1);
    return code;
  });
}

/// Pivots of 64 bits in the calls of all types, else of 32.
template <class T, class Pivot>
void getrf(const char* name, cusolverDnHandle_t handle, int64_t m, int64_t n, T* a, int64_t lda, Pivot* pivots,
           void* work, size_t bytes, int* info) {
  offer(pivots != nullptr, "a factorisation without pivots is not emulated");
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  const auto count = static_cast<size_t>(std::min(m, n));
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("the pivots", pivots, Use::write, count * sizeof(Pivot));
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    std::vector<Int> own(count);
    lapack.getrf(&rows, &columns, a, &ld, own.data(), &code);
    std::copy(own.begin(), own.end(), pivots);
    return code;
  });
}

template <class T, class Pivot>
void getrs(const char* name, cusolverDnHandle_t handle, cublasOperation_t op, int64_t n, int64_t columns, const T* a,
           int64_t lda, const Pivot* pivots, T* b, int64_t ldb, int* info) {
  offer(pivots != nullptr, "a solution without pivots is not emulated");
  require(op >= CUBLAS_OP_N && op <= CUBLAS_OP_C, "operation ", op, ": no such value");
  const Int order = size("n", n), right = size("nrhs", columns), ld = step("A", lda, n), ld_b = step("B", ldb, n);
  Request<T> request(handle, name, n, columns);
  request.matrix("A", a, Use::read, n, n, lda);
  request.memory("the pivots", pivots, Use::read, static_cast<size_t>(n) * sizeof(Pivot));
  request.matrix("B", b, Use::update, n, columns, ldb);
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    std::vector<Int> own(pivots, pivots + n);
    lapack.getrs(op == CUBLAS_OP_N ? "N" : "T", &order, &right, a, &ld, own.data(), b, &ld_b, &code, 1);
    return code;
  });
}

template <class T>
void geqrf(const char* name, cusolverDnHandle_t handle, int64_t m, int64_t n, T* a, int64_t lda, T* tau, void* work,
           size_t bytes, int* info) {
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("tau", tau, Use::write, static_cast<size_t>(std::min(m, n)) * sizeof(T));
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    with_work<T>([&](T* own, const Int* count) { lapack.geqrf(&rows, &columns, a, &ld, tau, own, count, &code); });
    return code;
  });
}

/// Calls before_run(request) at its end, for operands that only one of its callers has.
template <class T, class F>
void gesvd(const char* name, cusolverDnHandle_t handle, signed char job_u, signed char job_vt, int64_t m, int64_t n,
           T* a, int64_t lda, T* s, T* u, int64_t ldu, T* vt, int64_t ldvt, void* work, size_t bytes, int* info,
           const F& before_run) {
  require(m >= n, "A has ", m, " rows and ", n, " columns: it must have no more columns than rows");
  for (const signed char job : {job_u, job_vt})
    require(job == 'A' || job == 'S' || job == 'O' || job == 'N', "job ", static_cast<int>(job),
            ": expected A, S, O or N");
  require(job_u != 'O' || job_vt != 'O', "both jobs are O, and A has room for one result");
  const bool has_u = job_u == 'A' || job_u == 'S', has_vt = job_vt == 'A' || job_vt == 'S';
  const Int rows = size("m", m), columns = size("n", n), ld = step("A", lda, m);
  const Int ld_u = step("U", ldu, has_u ? m : 1), ld_vt = step("VT", ldvt, has_vt ? n : 1);
  const char left[] = {static_cast<char>(job_u), 0}, right[] = {static_cast<char>(job_vt), 0};
  const std::string jobs = cat(left, right);
  Request<T> request(handle, name, m, n);
  request.matrix("A", a, Use::update, m, n, lda);
  request.memory("S", s, Use::write, static_cast<size_t>(n) * sizeof(T));
  if (has_u) request.matrix("U", u, Use::write, m, job_u == 'A' ? m : n, ldu);
  if (has_vt) request.matrix("VT", vt, Use::write, n, n, ldvt);
  request.workspace(work, bytes, static_cast<size_t>(std::max<int64_t>(n, 1)) * sizeof(T));
  before_run(request);
  request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
    Int code = 0;
    with_work<T>([&](T* own, const Int* count) {
      lapack.gesvd(&jobs[0], &jobs[1], &rows, &columns, a, &ld, s, u, &ld_u, vt, &ld_vt, own, count, &code, 1, 1);
    });
    return code;
  });
}

template <class T>
cusolverStatus_t orgqr(const char* name, cusolverDnHandle_t handle, int m, int n, int k, T* a, int lda, const T* tau,
                       T* work, int count, int* info) {
  return call(name, [&] {
    require(m >= n && n >= k && k >= 0, "expected m >= n >= k, got ", m, ", ", n, ", ", k);
    step("A", lda, m);
    Request<T> request(handle, name, m, n);
    request.matrix("A", a, Use::write, m, n, lda);
    request.may_be("the reflectors");
    request.matrix("the reflectors", a, Use::read, m, k, lda, Part::lower);
    request.memory("tau", tau, Use::read, static_cast<size_t>(k) * sizeof(T));
    request.workspace(work, static_cast<size_t>(count) * sizeof(T), static_cast<size_t>(std::max(n, 1)) * sizeof(T));
    request.run(info, [=](const lapack::Functions<T>& lapack, int64_t) {
      Int code = 0;
      with_work<T>([&](T* own, const Int* size) { lapack.orgqr(&m, &n, &k, a, &lda, tau, own, size, &code); });
      return code;
    });
  });
}
inline cusolverStatus_t count_size(const char* name, cusolverDnHandle_t handle, int n, int* count) {
  return call(name, [&] {
    context_of(handle);
    require(count, "the result is NULL");
    *count = std::max(n, 1);
  });
}

}  // namespace emulator::solver
