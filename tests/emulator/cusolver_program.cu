// SPDX-License-Identifier: Apache-2.0
// An ordinary program of cuSOLVER: products of the factors give the matrices back. `fault NAME` makes one mistake on
// purpose.
#include <cuda_runtime.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/library_program.h"

#define SOLVER(call) CHECK((call) == CUSOLVER_STATUS_SUCCESS)

namespace {

using library_program::Memory;

/// Column by column.
template <class T>
struct Matrix {
  int64_t rows, columns;
  std::vector<T> values;
  Matrix(int64_t m, int64_t n) : rows(m), columns(n), values(m * n) {}
  Matrix(int64_t m, int64_t n, std::vector<T> all) : rows(m), columns(n), values(std::move(all)) {}
  T& operator()(int64_t i, int64_t j) { return values[j * rows + i]; }
  T operator()(int64_t i, int64_t j) const { return values[j * rows + i]; }
  Matrix transposed() const {
    Matrix other(columns, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) other(j, i) = (*this)(i, j);
    return other;
  }
  Matrix operator*(const Matrix& b) const {
    Matrix c(rows, b.columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < b.columns; ++j)
        for (int64_t k = 0; k < columns; ++k) c(i, j) += (*this)(i, k) * b(k, j);
    return c;
  }
  /// The upper triangle of the first n rows.
  Matrix upper(int64_t n) const {
    Matrix u(n, columns);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < n && i <= j; ++i) u(i, j) = (*this)(i, j);
    return u;
  }
  /// The elements below the diagonal, with ones on it.
  Matrix unit_lower() const {
    Matrix l(rows, columns);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = j; i < rows; ++i) l(i, j) = i == j ? T(1) : (*this)(i, j);
    return l;
  }
};

template <class T>
Matrix<T> noise(int64_t m, int64_t n) {
  static std::mt19937 generator(5);
  std::uniform_real_distribution<float> range(-1, 1);
  Matrix<T> a(m, n);
  for (T& x : a.values) x = static_cast<T>(range(generator));
  return a;
}

template <class T>
void agree(const Matrix<T>& got, const Matrix<T>& want) {
  CHECK(got.rows == want.rows && got.columns == want.columns);
  for (size_t i = 0; i < got.values.size(); ++i)
    CHECK(std::abs(got.values[i] - want.values[i]) <= 200 * std::numeric_limits<T>::epsilon(),
          std::to_string(got.values[i]) + " for " + std::to_string(want.values[i]));
}

template <class T>
constexpr cudaDataType kType = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;

cusolverDnHandle_t handle = nullptr;
cusolverDnParams_t params = nullptr;

/// Runs a call with the workspaces that `size` asks for; returns info.
template <class Size, class Call, class... A>
int with_work(Size size, Call call, A... arguments) {
  size_t bytes = 0, host_bytes = 0;
  SOLVER(size(handle, params, arguments..., &bytes, &host_bytes));
  Memory<char> work(bytes);
  Memory<int> info(1);
  std::vector<char> host(host_bytes);
  SOLVER(call(handle, params, arguments..., work.device, bytes, host.data(), host_bytes, info.device));
  return info.get()[0];
}

template <class T>
Matrix<T> factored(int64_t n, const Memory<T>& a, Memory<int64_t>& pivots, int* info) {
  size_t bytes = 0, host_bytes = 0;
  SOLVER(cusolverDnXgetrf_bufferSize(handle, params, n, n, kType<T>, a.device, n, kType<T>, &bytes, &host_bytes));
  Memory<char> work(bytes);
  Memory<int> code(1);
  SOLVER(cusolverDnXgetrf(handle, params, n, n, kType<T>, a.device, n, pivots.device, kType<T>, work.device, bytes,
                          nullptr, 0, code.device));
  *info = code.get()[0];
  return {n, n, a.get()};
}

template <class T>
void square_matrices(int64_t n) {
  const Matrix<T> x = noise<T>(n, n);
  Matrix<T> definite = x * x.transposed();
  for (int64_t i = 0; i < n; ++i) definite(i, i) += 1;
  for (const cublasFillMode_t fill : {CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_LOWER}) {
    Memory<T> a(definite.values), w(n);
    CHECK(with_work(cusolverDnXpotrf_bufferSize, cusolverDnXpotrf, fill, n, kType<T>, a.device, n, kType<T>) == 0);
    const Matrix<T> l(n, n, a.get()), u = (fill == CUBLAS_FILL_MODE_UPPER ? l : l.transposed()).upper(n);
    agree(u.transposed() * u, definite);
    Memory<T> symmetric(definite.values);
    CHECK(with_work(cusolverDnXsyevd_bufferSize, cusolverDnXsyevd, CUSOLVER_EIG_MODE_VECTOR, fill, n, kType<T>,
                    symmetric.device, n, kType<T>, w.device, kType<T>) == 0);
    const Matrix<T> v(n, n, symmetric.get());
    Matrix<T> scaled = v;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) scaled(i, j) *= w.get()[j];
    agree(scaled * v.transposed(), definite);
  }
  Memory<T> a(x.values);
  Memory<int64_t> pivots(n);
  int info = 0;
  const Matrix<T> lu = factored(n, a, pivots, &info);
  CHECK(info == 0);
  Matrix<T> rows = x;
  const std::vector<int64_t> exchanges = pivots.get();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) std::swap(rows(i, j), rows(exchanges[i] - 1, j));
  agree(lu.unit_lower() * lu.upper(n), rows);
  for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    const Matrix<T> want = noise<T>(n, 2);
    Memory<T> b(((op == CUBLAS_OP_N ? x : x.transposed()) * want).values);
    Memory<int> code(1);
    SOLVER(cusolverDnXgetrs(handle, params, op, n, 2, kType<T>, a.device, n, pivots.device, kType<T>, b.device, n,
                            code.device));
    CHECK(code.get()[0] == 0);
    Matrix<T> got(n, 2, b.get());
    for (T& value : got.values) value /= 100;  // x's condition
    Matrix<T> small = want;
    for (T& value : small.values) value /= 100;
    agree(got, small);
  }
  Memory<T> zeros(std::vector<T>(n * n));
  factored(n, zeros, pivots, &info);
  CHECK(info == 1);
  CHECK(with_work(cusolverDnXpotrf_bufferSize, cusolverDnXpotrf, CUBLAS_FILL_MODE_LOWER, n, kType<T>, zeros.device, n,
                  kType<T>) == 1);
}

template <class T>
void tall_matrices(int64_t m, int64_t n) {
  const Matrix<T> x = noise<T>(m, n);
  Memory<T> a(x.values), tau(n), s(n), u(m * n), vt(n * n);
  CHECK(with_work(cusolverDnXgeqrf_bufferSize, cusolverDnXgeqrf, m, n, kType<T>, a.device, m, kType<T>, tau.device,
                  kType<T>) == 0);
  const Matrix<T> r = Matrix<T>(m, n, a.get()).upper(n);
  int count = 0;
  Memory<int> info(1);
  const auto M = static_cast<int>(m), N = static_cast<int>(n);
  if constexpr (sizeof(T) == 4) {
    SOLVER(cusolverDnSorgqr_bufferSize(handle, M, N, N, a.device, M, tau.device, &count));
    Memory<T> work(count);
    SOLVER(cusolverDnSorgqr(handle, M, N, N, a.device, M, tau.device, work.device, count, info.device));
    CHECK(info.get()[0] == 0);
  } else {
    SOLVER(cusolverDnDorgqr_bufferSize(handle, M, N, N, a.device, M, tau.device, &count));
    Memory<T> work(count);
    SOLVER(cusolverDnDorgqr(handle, M, N, N, a.device, M, tau.device, work.device, count, info.device));
    CHECK(info.get()[0] == 0);
  }
  agree(Matrix<T>(m, n, a.get()) * r, x);
  Memory<T> again(x.values);
  const signed char job = 'S';
  CHECK(with_work(cusolverDnXgesvd_bufferSize, cusolverDnXgesvd, job, job, m, n, kType<T>, again.device, m, kType<T>,
                  s.device, kType<T>, u.device, m, kType<T>, vt.device, n, kType<T>) == 0);
  Matrix<T> left(m, n, u.get());
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) left(i, j) *= s.get()[j];
  agree(left * Matrix<T>(n, n, vt.get()), x);
}

/// Three matrices in one call: of cuSOLVER's Jacobi iterations, which take up to 32 rows and columns.
template <class T>
void batches(int m, int n) {
  constexpr int kCount = 3;
  gesvdjInfo_t svd = nullptr;
  syevjInfo_t eigen = nullptr;
  SOLVER(cusolverDnCreateGesvdjInfo(&svd));
  SOLVER(cusolverDnCreateSyevjInfo(&eigen));
  const int k = std::min(m, n);
  const Matrix<T> all = noise<T>(m, n * kCount), square = noise<T>(n, n * kCount);
  Memory<T> a(all.values), s(k * kCount), u(m * m * kCount), v(n * n * kCount), q(square.values), w(n * kCount);
  Memory<int> info(kCount);
  constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
  constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;
  int count = 0;
  if constexpr (sizeof(T) == 4) {
    SOLVER(cusolverDnSgesvdjBatched_bufferSize(handle, kVectors, m, n, a.device, m, s.device, u.device, m, v.device, n,
                                               &count, svd, kCount));
    Memory<T> work(count);
    SOLVER(cusolverDnSgesvdjBatched(handle, kVectors, m, n, a.device, m, s.device, u.device, m, v.device, n,
                                    work.device, count, info.device, svd, kCount));
    SOLVER(
        cusolverDnSsyevjBatched_bufferSize(handle, kVectors, kLower, n, q.device, n, w.device, &count, eigen, kCount));
    Memory<T> other(count);
    SOLVER(cusolverDnSsyevjBatched(handle, kVectors, kLower, n, q.device, n, w.device, other.device, count, info.device,
                                   eigen, kCount));
    CUDA(cudaDeviceSynchronize());
  } else {
    SOLVER(cusolverDnDgesvdjBatched_bufferSize(handle, kVectors, m, n, a.device, m, s.device, u.device, m, v.device, n,
                                               &count, svd, kCount));
    Memory<T> work(count);
    SOLVER(cusolverDnDgesvdjBatched(handle, kVectors, m, n, a.device, m, s.device, u.device, m, v.device, n,
                                    work.device, count, info.device, svd, kCount));
    SOLVER(
        cusolverDnDsyevjBatched_bufferSize(handle, kVectors, kLower, n, q.device, n, w.device, &count, eigen, kCount));
    Memory<T> other(count);
    SOLVER(cusolverDnDsyevjBatched(handle, kVectors, kLower, n, q.device, n, w.device, other.device, count, info.device,
                                   eigen, kCount));
    CUDA(cudaDeviceSynchronize());
  }
  CHECK(info.get() == std::vector<int>(kCount));
  const auto part = [](const std::vector<T>& of, int64_t rows, int64_t columns, int b) {
    const auto first = of.begin() + b * rows * columns;
    return Matrix<T>(rows, columns, std::vector<T>(first, first + rows * columns));
  };
  const auto scaled = [](Matrix<T> x, const Matrix<T>& by) {
    for (int64_t j = 0; j < x.columns; ++j)
      for (int64_t i = 0; i < x.rows; ++i) x(i, j) *= j < by.rows ? by(j, 0) : 0;
    return x;
  };
  for (int b = 0; b < kCount; ++b) {
    const Matrix<T> left = scaled(part(u.get(), m, m, b), part(s.get(), k, 1, b)), right = part(v.get(), n, n, b);
    Matrix<T> narrow(m, k, std::vector<T>(left.values.begin(), left.values.begin() + m * k));
    Matrix<T> thin(n, k, std::vector<T>(right.values.begin(), right.values.begin() + n * k));
    agree(narrow * thin.transposed(), part(all.values, m, n, b));
    Matrix<T> symmetric = part(square.values, n, n, b);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < j; ++i) symmetric(i, j) = symmetric(j, i);
    const Matrix<T> vectors = part(q.get(), n, n, b);
    agree(scaled(vectors, part(w.get(), n, 1, b)) * vectors.transposed(), symmetric);
  }
  SOLVER(cusolverDnDestroyGesvdjInfo(svd));
  SOLVER(cusolverDnDestroySyevjInfo(eigen));
}

/// Calls of one type agree with calls of all types.
#define ONE_TYPE(X, T)                                                                                                \
  void calls_of_##X() {                                                                                               \
    constexpr int kOrder = 20;                                                                                        \
    const Matrix<T> x = noise<T>(kOrder, kOrder);                                                                     \
    Matrix<T> definite = x * x.transposed();                                                                          \
    for (int i = 0; i < kOrder; ++i) definite(i, i) += 1;                                                             \
    int count = 0;                                                                                                    \
    Memory<int> info(1), pivots(kOrder);                                                                              \
    Memory<int64_t> wide(kOrder);                                                                                     \
    Memory<T> a(definite.values), a_all(definite.values);                                                             \
    SOLVER(cusolverDn##X##potrf_bufferSize(handle, CUBLAS_FILL_MODE_UPPER, kOrder, a.device, kOrder, &count));        \
    Memory<T> work(count);                                                                                            \
    SOLVER(cusolverDn##X##potrf(handle, CUBLAS_FILL_MODE_UPPER, kOrder, a.device, kOrder, work.device, count,         \
                                info.device));                                                                        \
    const int64_t order = kOrder;                                                                                     \
    CHECK(with_work(cusolverDnXpotrf_bufferSize, cusolverDnXpotrf, CUBLAS_FILL_MODE_UPPER, order, kType<T>,           \
                    a_all.device, order, kType<T>) == 0);                                                             \
    CHECK(info.get()[0] == 0 && a.get() == a_all.get());                                                              \
    Memory<T> lu(x.values), lu_all(x.values), b((x * x).values);                                                      \
    SOLVER(cusolverDn##X##getrf_bufferSize(handle, kOrder, kOrder, lu.device, kOrder, &count));                       \
    SOLVER(cusolverDn##X##getrf(handle, kOrder, kOrder, lu.device, kOrder, work.device, pivots.device, info.device)); \
    int code = 0;                                                                                                     \
    factored(order, lu_all, wide, &code);                                                                             \
    const std::vector<int64_t> rows = wide.get();                                                                     \
    CHECK(lu.get() == lu_all.get() && pivots.get() == std::vector<int>(rows.begin(), rows.end()));                    \
    SOLVER(cusolverDn##X##getrs(handle, CUBLAS_OP_N, kOrder, kOrder, lu.device, kOrder, pivots.device, b.device,      \
                                kOrder, info.device));                                                                \
    agree(x* Matrix<T>(kOrder, kOrder, b.get()), x* x);                                                               \
    Memory<T> q(x.values), tau(kOrder), s(kOrder), vt(kOrder*kOrder), u(x.values);                                    \
    SOLVER(cusolverDn##X##geqrf_bufferSize(handle, kOrder, kOrder, q.device, kOrder, &count));                        \
    SOLVER(                                                                                                           \
        cusolverDn##X##geqrf(handle, kOrder, kOrder, q.device, kOrder, tau.device, work.device, count, info.device)); \
    const Matrix<T> r = Matrix<T>(kOrder, kOrder, q.get()).upper(kOrder);                                             \
    agree(r.transposed() * r, x.transposed() * x);                                                                    \
    SOLVER(cusolverDn##X##gesvd_bufferSize(handle, kOrder, kOrder, &count));                                          \
    SOLVER(cusolverDn##X##gesvd(handle, 'O', 'S', kOrder, kOrder, u.device, kOrder, s.device, nullptr, 1, vt.device,  \
                                kOrder, work.device, count, nullptr, info.device));                                   \
    Matrix<T> left(kOrder, kOrder, u.get());                                                                          \
    for (int j = 0; j < kOrder; ++j)                                                                                  \
      for (int i = 0; i < kOrder; ++i) left(i, j) *= s.get()[j];                                                      \
    agree(left* Matrix<T>(kOrder, kOrder, vt.get()), x);                                                              \
    CHECK(cusolverDn##X##gesvd(handle, 'O', 'O', kOrder, kOrder, u.device, kOrder, s.device, nullptr, 1, vt.device,   \
                               kOrder, work.device, count, nullptr, info.device) == CUSOLVER_STATUS_INVALID_VALUE);   \
  }
ONE_TYPE(S, float)
ONE_TYPE(D, double)

void statuses() {
  size_t bytes = 0, host = 0;
  int version = 0;
  SOLVER(cusolverGetVersion(&version));
  CHECK(version == CUSOLVER_VERSION);
  CHECK(cusolverDnDestroy(nullptr) == CUSOLVER_STATUS_NOT_INITIALIZED);
  CHECK(cusolverDnXgesvd_bufferSize(handle, params, 'S', 'S', 3, 5, CUDA_R_32F, nullptr, 3, CUDA_R_32F, nullptr,
                                    CUDA_R_32F, nullptr, 3, CUDA_R_32F, nullptr, 3, CUDA_R_32F, &bytes,
                                    &host) == CUSOLVER_STATUS_INVALID_VALUE);
  CHECK(cusolverDnSgesvdjBatched(handle, CUSOLVER_EIG_MODE_VECTOR, 33, 3, nullptr, 33, nullptr, nullptr, 33, nullptr, 3,
                                 nullptr, 0, nullptr, nullptr, 1) == CUSOLVER_STATUS_INVALID_VALUE);
  CHECK(cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, 4, CUDA_R_32F, nullptr, 3, CUDA_R_32F, nullptr, 0,
                         nullptr, 0, nullptr) == CUSOLVER_STATUS_INVALID_VALUE);
}

__global__ void fill_kernel(float* to) { to[threadIdx.x] = threadIdx.x % 9 == 0 ? 2.0F : 0.1F; }

int fault(const std::string& name) {
  Memory<float> a(std::vector<float>(64, 1)), fresh(64), small(63), work(8);
  Memory<int> info(1);
  CUDA(cudaDeviceSynchronize());
  const auto run = [&](const Memory<float>& of) {
    return cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, 8, CUDA_R_32F, of.device, 8, CUDA_R_32F,
                            work.device, 32, nullptr, 0, info.device);
  };
  if (name == "beyond") std::printf("status %d\n", run(small));
  if (name == "workspace")
    std::printf("status %d\n", cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, 8, CUDA_R_32F, a.device, 8,
                                                CUDA_R_32F, work.device, 16, nullptr, 0, info.device));
  if (name == "uninitialised") SOLVER(run(fresh));
  if (name == "not_emulated")
    std::printf("status %d\n",
                cusolverDnSpotri(handle, CUBLAS_FILL_MODE_LOWER, 8, a.device, 8, work.device, 8, info.device));
  if (name == "unordered" || name == "ordered") {
    cudaStream_t one = nullptr, two = nullptr;
    cudaEvent_t event = nullptr;
    CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    SOLVER(cusolverDnSetStream(handle, two));
    fill_kernel<<<1, 64, 0, one>>>(a.device);
    CUDA(cudaEventRecord(event, one));
    if (name == "ordered") CUDA(cudaStreamWaitEvent(two, event));
    SOLVER(run(a));
  }
  CUDA(cudaDeviceSynchronize());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  SOLVER(cusolverDnCreate(&handle));
  SOLVER(cusolverDnCreateParams(&params));
  if (argc > 2) return fault(argv[2]);
  for (const int64_t n : {1, 4, 17}) {
    square_matrices<float>(n);
    square_matrices<double>(n);
    tall_matrices<float>(n, n);
    tall_matrices<double>(n + 5, n);
  }
  batches<float>(5, 3);
  batches<double>(4, 6);
  calls_of_S();
  calls_of_D();
  statuses();
  SOLVER(cusolverDnDestroyParams(params));
  SOLVER(cusolverDnDestroy(handle));
  std::puts("right");
}
