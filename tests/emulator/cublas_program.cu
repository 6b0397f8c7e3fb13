// SPDX-License-Identifier: Apache-2.0
// An ordinary program of cuBLAS over small whole numbers, which every type here holds exactly: results must be equal.
// `fault NAME` makes one mistake on purpose.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <complex>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/emulator/library_program.h"

#define BLAS(call) CHECK((call) == CUBLAS_STATUS_SUCCESS)

namespace {

using Value = std::complex<double>;

template <class T>
constexpr bool kComplex = std::is_same_v<T, cuComplex> || std::is_same_v<T, cuDoubleComplex>;

template <class T>
Value value(T x) {
  if constexpr (kComplex<T>)
    return {x.x, x.y};
  else
    return static_cast<double>(static_cast<float>(x));
}
template <>
Value value(double x) {
  return x;
}
template <class T>
T number(Value x) {
  if constexpr (std::is_same_v<T, cuComplex>)
    return make_cuComplex(static_cast<float>(x.real()), static_cast<float>(x.imag()));
  else if constexpr (std::is_same_v<T, cuDoubleComplex>)
    return make_cuDoubleComplex(x.real(), x.imag());
  else
    return static_cast<T>(static_cast<float>(x.real()));
}

std::mt19937 generator(5);
template <class T>
Value any() {
  std::uniform_int_distribution<int> numbers(-3, 3);
  const double re = numbers(generator), im = numbers(generator);
  return kComplex<T> ? Value(re, im) : Value(re);
}

/// Elements on the device and their copy on the host; memory ends with the last one.
template <class T>
struct Array {
  std::vector<T> host;
  T* device = nullptr;
  explicit Array(size_t count) : host(count) {
    for (T& x : host) x = number<T>(any<T>());
    CUDA(cudaMalloc(&device, count * sizeof(T)));
    put();
  }
  ~Array() { cudaFree(device); }
  Array(const Array&) = delete;
  void put() { CUDA(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice)); }
  std::vector<T> now() const {
    std::vector<T> all(host.size());
    CUDA(cudaMemcpy(all.data(), device, all.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return all;
  }
};

/// A matrix with padding below each column, except the last.
template <class T>
struct Matrix : Array<T> {
  int rows, columns, ld;
  Matrix(int m, int n, int pad = 2)
      : Array<T>(static_cast<size_t>((m + pad) * (n - 1) + m)), rows(m), columns(n), ld(m + pad) {}
  Value operator()(int i, int j) const { return value(this->host[static_cast<size_t>(j * ld + i)]); }
  Value at(int i, int j, cublasOperation_t op) const {
    const Value x = op == CUBLAS_OP_N ? (*this)(i, j) : (*this)(j, i);
    return op == CUBLAS_OP_C ? std::conj(x) : x;
  }
  /// Element (i, j) is expected(i, j) in the triangle, and nothing else has changed.
  template <class F>
  bool is(F&& expected, cublasFillMode_t fill = CUBLAS_FILL_MODE_FULL) const {
    const auto now = this->now();
    for (size_t at = 0; at < now.size(); ++at) {
      const int i = static_cast<int>(at) % ld, j = static_cast<int>(at) / ld;
      const bool inside =
          i < rows && (fill == CUBLAS_FILL_MODE_FULL || (fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j));
      const Value want = inside ? value(number<T>(expected(i, j))) : value(this->host[at]);
      if (value(now[at]) != want) {
        std::fprintf(stderr, "(%d, %d): %g%+gi, expected %g%+gi\n", i, j, value(now[at]).real(), value(now[at]).imag(),
                     want.real(), want.imag());
        return false;
      }
    }
    return true;
  }
};

cublasHandle_t handle() {
  static cublasHandle_t all = [] {
    cublasHandle_t made;
    BLAS(cublasCreate(&made));
    return made;
  }();
  return all;
}

constexpr cublasOperation_t kOps[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};

/// `run` (op_a, op_b, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc) multiplies.
template <class A, class C, class S, class F>
void products(F&& run) {
  for (const cublasOperation_t ta : kOps)
    for (const cublasOperation_t tb : kOps)
      for (const int beta : {0, 2}) {
        const int m = 12, n = 7, k = 9;
        Matrix<A> a(ta == CUBLAS_OP_N ? m : k, ta == CUBLAS_OP_N ? k : m, 4),
            b(tb == CUBLAS_OP_N ? k : n, tb == CUBLAS_OP_N ? n : k, 3);
        Matrix<C> c(m, n, 4);
        const S alpha1 = number<S>(kComplex<S> ? Value(2, -1) : Value(-2)), beta1 = number<S>(beta);
        BLAS(run(ta, tb, m, n, k, &alpha1, a.device, a.ld, b.device, b.ld, &beta1, c.device, c.ld));
        CHECK(c.is([&](int i, int j) {
          Value sum = 0;
          for (int l = 0; l < k; ++l) sum += a.at(i, l, ta) * b.at(l, j, tb);
          return value(alpha1) * sum + value(beta1) * c(i, j);
        }));
      }
}

template <class T, class F>
void plain_products(F* function) {
  products<T, T, T>([&](auto... arguments) { return function(handle(), arguments...); });
}

template <class A, class C, class S>
void products_ex(cudaDataType a_type, cudaDataType c_type, cublasComputeType_t compute) {
  products<A, C, S>([&](cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const S* alpha, const A* a,
                        int lda, const A* b, int ldb, const S* beta, C* c, int ldc) {
    if (std::is_same_v<A, int8_t>) lda = lda / 4 * 4, ldb = ldb / 4 * 4;
    return cublasGemmEx(handle(), ta, tb, m, n, k, alpha, a, a_type, lda, b, a_type, ldb, beta, c, c_type, ldc, compute,
                        CUBLAS_GEMM_DEFAULT);
  });
}

void gemm() {
  plain_products<float>(cublasSgemm);
  plain_products<double>(cublasDgemm);
  plain_products<cuComplex>(cublasCgemm);
  plain_products<cuDoubleComplex>(cublasZgemm);
  plain_products<__half>(cublasHgemm);
  plain_products<float>(cublasSgemm_64);
  products_ex<__half, float, float>(CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  products_ex<__nv_bfloat16, __nv_bfloat16, float>(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  products_ex<double, double, double>(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F);
  BLAS(cublasSetMathMode(handle(), CUBLAS_TF32_TENSOR_OP_MATH));
  plain_products<float>(cublasSgemm);
  BLAS(cublasSetMathMode(handle(), CUBLAS_FP32_EMULATED_BF16X9_MATH));
  plain_products<float>(cublasSgemm);
  BLAS(cublasSetMathMode(handle(), CUBLAS_DEFAULT_MATH));
  // Without a k C is scaled.
  Matrix<float> c(3, 3);
  const float one = 1, two = 2;
  BLAS(cublasSgemm(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 0, &one, nullptr, 3, nullptr, 1, &two, c.device, c.ld));
  CHECK(c.is([&](int i, int j) { return 2.0 * c(i, j); }));
}

void scalars_on_the_device() {
  Matrix<float> a(5, 6), b(6, 4), c(5, 4);
  Array<float> factors(2);
  factors.host = {3, -1};
  factors.put();
  BLAS(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasSgemm(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 5, 4, 6, factors.device, a.device, a.ld, b.device, b.ld,
                   factors.device + 1, c.device, c.ld));
  Array<float> dot(1);
  BLAS(cublasSdot(handle(), 5, a.device, 1, b.device, 1, dot.device));
  BLAS(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST));
  CHECK(c.is([&](int i, int j) {
    Value sum = 0;
    for (int l = 0; l < 6; ++l) sum += a(i, l) * b(l, j);
    return 3.0 * sum - c(i, j);
  }));
  Value sum = 0;
  for (int l = 0; l < 5; ++l) sum += a(l, 0) * b(l, 0);
  CHECK(value(dot.now()[0]) == sum);
}

void batches() {
  constexpr int kCount = 3, m = 4, n = 5, k = 6;
  Array<float> a(kCount * m * k), b(k * n), c(kCount * m * n), d(kCount * m * n);
  const auto expected = [&](int batch, int i, int j) {
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += a.host[batch * m * k + l * m + i] * b.host[j * k + l];
    return sum;
  };
  const float one = 1, zero = 0;
  BLAS(cublasSgemmStridedBatched(handle(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.device, m, m * k, b.device, k, 0,
                                 &zero, c.device, m, m * n, kCount));
  std::vector<float*> pointers;
  for (int i = 0; i < kCount; ++i) pointers.push_back(a.device + i * m * k);
  for (int i = 0; i < kCount; ++i) pointers.push_back(b.device);
  for (int i = 0; i < kCount; ++i) pointers.push_back(d.device + i * m * n);
  float** list = nullptr;
  CUDA(cudaMalloc(&list, pointers.size() * sizeof(float*)));
  CUDA(cudaMemcpy(list, pointers.data(), pointers.size() * sizeof(float*), cudaMemcpyHostToDevice));
  BLAS(cublasSgemmBatched(handle(), CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, list, m, list + kCount, k, &zero,
                          list + 2 * kCount, m, kCount));
  const auto c1 = c.now(), d1 = d.now();
  for (int batch = 0; batch < kCount; ++batch)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        const size_t at = static_cast<size_t>((batch * n + j) * m + i);
        CHECK(c1[at] == expected(batch, i, j) && d1[at] == expected(batch, i, j));
      }
  CUDA(cudaFree(list));
}

void vectors() {
  constexpr int n = 9;
  Array<float> x(3 * n - 2), y(2 * n - 1);
  const auto xs = [&](int i) { return x.host[3 * i]; };
  const auto ys = [&](int i) { return y.host[2 * i]; };
  const float two = 2;
  float dot = 0, sum = 0, norm = 0, want_dot = 0, want_sum = 0, want_norm = 0;
  int largest = 0, want = 1;
  BLAS(cublasSdot(handle(), n, x.device, 3, y.device, -2, &dot));
  BLAS(cublasSasum(handle(), n, x.device, 3, &sum));
  BLAS(cublasSnrm2(handle(), n, x.device, 3, &norm));
  BLAS(cublasIsamax(handle(), n, x.device, 3, &largest));
  for (int i = 0; i < n; ++i) {
    want_dot += xs(i) * ys(n - 1 - i), want_sum += std::abs(xs(i)), want_norm += xs(i) * xs(i);
    if (std::abs(xs(i)) > std::abs(xs(want - 1))) want = i + 1;
  }
  CHECK(dot == want_dot && sum == want_sum && norm == std::sqrt(want_norm) && largest == want);
  BLAS(cublasSaxpy(handle(), n, &two, x.device, 3, y.device, 2));
  const auto added = y.now();
  for (int i = 0; i < 2 * n - 1; ++i) CHECK(added[i] == y.host[i] + (i % 2 == 0 ? 2 * xs(i / 2) : 0));
  BLAS(cublasSscal(handle(), n, &two, y.device, 2));
  BLAS(cublasSswap(handle(), n, x.device, 3, y.device, 2));
  const auto swapped_x = x.now(), swapped_y = y.now();
  for (int i = 0; i < n; ++i) CHECK(swapped_x[3 * i] == 2 * added[2 * i] && swapped_y[2 * i] == xs(i));
  // A rotation by a quarter turn.
  Array<double> u(4), v(4);
  const double c = 0, s = 1;
  BLAS(cublasDrot(handle(), 4, u.device, 1, v.device, 1, &c, &s));
  for (int i = 0; i < 4; ++i) CHECK(u.now()[i] == v.host[i] && v.now()[i] == -u.host[i]);
  Array<cuComplex> p(5), q(5);
  cuComplex z;
  BLAS(cublasCdotc(handle(), 5, p.device, 1, q.device, 1, &z));
  Value inner = 0;
  for (int i = 0; i < 5; ++i) inner += std::conj(value(p.host[i])) * value(q.host[i]);
  CHECK(value(z) == inner);
  Array<__half> h(7);
  float h_norm = 0;
  BLAS(cublasNrm2Ex(handle(), 7, h.device, CUDA_R_16F, 1, &h_norm, CUDA_R_32F, CUDA_R_32F));
  double squares = 0;
  for (const __half e : h.host) squares += std::norm(value(e));
  CHECK(h_norm == static_cast<float>(std::sqrt(squares)));
}

void level_2() {
  for (const cublasOperation_t op : kOps) {
    Matrix<cuComplex> a(5, 7);
    Matrix<cuComplex> x(op == CUBLAS_OP_N ? 7 : 5, 1), y(op == CUBLAS_OP_N ? 5 : 7, 1);
    const cuComplex alpha = make_cuComplex(1, 1), beta = make_cuComplex(2, 0);
    BLAS(cublasCgemv(handle(), op, 5, 7, &alpha, a.device, a.ld, x.device, 1, &beta, y.device, 1));
    CHECK(y.is([&](int i, int) {
      Value sum = 0;
      for (int l = 0; l < x.rows; ++l) sum += a.at(i, l, op) * x(l, 0);
      return value(alpha) * sum + value(beta) * y(i, 0);
    }));
  }
  for (const cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    const auto stored = [&](int i, int j) { return fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j; };
    Matrix<float> a(6, 6), x(6, 1), y(6, 1);
    const float alpha = 2, beta = -1;
    BLAS(cublasSsymv(handle(), fill, 6, &alpha, a.device, a.ld, x.device, 1, &beta, y.device, 1));
    CHECK(y.is([&](int i, int) {
      Value sum = 0;
      for (int l = 0; l < 6; ++l) sum += (stored(i, l) ? a(i, l) : a(l, i)) * x(l, 0);
      return 2.0 * sum - y(i, 0);
    }));
    BLAS(cublasSsyr(handle(), fill, 6, &alpha, x.device, 1, a.device, a.ld));
    CHECK(a.is([&](int i, int j) { return a(i, j) + 2.0 * x(i, 0) * x(j, 0); }, fill));
    for (const cublasOperation_t op : kOps) {  // T (T^-1 x) is x; ones on the diagonal keep all numbers whole
      Matrix<cuDoubleComplex> t(6, 6), z(6, 1);
      BLAS(cublasZtrsv(handle(), fill, op, CUBLAS_DIAG_UNIT, 6, t.device, t.ld, z.device, 1));
      BLAS(cublasZtrmv(handle(), fill, op, CUBLAS_DIAG_UNIT, 6, t.device, t.ld, z.device, 1));
      CHECK(z.is([&](int i, int) { return z(i, 0); }));
    }
  }
  Matrix<cuComplex> a(4, 3), x(4, 1), y(3, 1);
  const cuComplex alpha = make_cuComplex(0, 1);
  BLAS(cublasCgerc(handle(), 4, 3, &alpha, x.device, 1, y.device, 1, a.device, a.ld));
  CHECK(a.is([&](int i, int j) { return a(i, j) + value(alpha) * x(i, 0) * std::conj(y(j, 0)); }));
}

void level_3() {
  using T = cuDoubleComplex;
  const T alpha = make_cuDoubleComplex(1, -2), beta = make_cuDoubleComplex(3, 0);
  for (const cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    const auto stored = [&](int i, int j) { return fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j; };
    for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      Matrix<T> a(op == CUBLAS_OP_N ? 5 : 3, op == CUBLAS_OP_N ? 3 : 5), c(5, 5);
      BLAS(cublasZsyrk(handle(), fill, op, 5, 3, &alpha, a.device, a.ld, &beta, c.device, c.ld));
      CHECK(c.is(
          [&](int i, int j) {
            Value sum = 0;
            for (int l = 0; l < 3; ++l) sum += a.at(i, l, op) * a.at(j, l, op);
            return value(alpha) * sum + value(beta) * c(i, j);
          },
          fill));
    }
    for (const cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_C}) {
      Matrix<T> a(op == CUBLAS_OP_N ? 5 : 3, op == CUBLAS_OP_N ? 3 : 5), c(5, 5);
      const double two = 2, zero = 0;
      BLAS(cublasZherk(handle(), fill, op, 5, 3, &two, a.device, a.ld, &zero, c.device, c.ld));
      CHECK(c.is(
          [&](int i, int j) {
            Value sum = 0;
            for (int l = 0; l < 3; ++l) sum += a.at(i, l, op) * std::conj(a.at(j, l, op));
            return 2.0 * sum;
          },
          fill));
    }
    for (const cublasSideMode_t side : {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT}) {
      const int order = side == CUBLAS_SIDE_LEFT ? 5 : 4;
      Matrix<T> a(order, order), b(5, 4), c(5, 4);
      const auto whole = [&](int i, int j) { return stored(i, j) ? a(i, j) : a(j, i); };
      BLAS(cublasZsymm(handle(), side, fill, 5, 4, &alpha, a.device, a.ld, b.device, b.ld, &beta, c.device, c.ld));
      CHECK(c.is([&](int i, int j) {
        Value sum = 0;
        for (int l = 0; l < order; ++l) sum += side == CUBLAS_SIDE_LEFT ? whole(i, l) * b(l, j) : b(i, l) * whole(l, j);
        return value(alpha) * sum + value(beta) * c(i, j);
      }));
      for (const cublasOperation_t op : kOps) {
        Matrix<T> x(5, 4);
        const T one = make_cuDoubleComplex(1, 0);
        BLAS(cublasZtrsm(handle(), side, fill, op, CUBLAS_DIAG_UNIT, 5, 4, &alpha, a.device, a.ld, x.device, x.ld));
        BLAS(cublasZtrmm(handle(), side, fill, op, CUBLAS_DIAG_UNIT, 5, 4, &one, a.device, a.ld, x.device, x.ld,
                         x.device, x.ld));
        CHECK(x.is([&](int i, int j) { return value(alpha) * x(i, j); }));
      }
    }
  }
  for (const cublasOperation_t ta : kOps)
    for (const cublasOperation_t tb : kOps) {
      Matrix<T> a(ta == CUBLAS_OP_N ? 5 : 4, ta == CUBLAS_OP_N ? 4 : 5),
          b(tb == CUBLAS_OP_N ? 5 : 4, tb == CUBLAS_OP_N ? 4 : 5), c(5, 4);
      BLAS(cublasZgeam(handle(), ta, tb, 5, 4, &alpha, a.device, a.ld, &beta, b.device, b.ld, c.device, c.ld));
      CHECK(c.is([&](int i, int j) { return value(alpha) * a.at(i, j, ta) + value(beta) * b.at(i, j, tb); }));
    }
  Matrix<float> a(5, 4), x(4, 1), c(5, 4);
  BLAS(cublasSdgmm(handle(), CUBLAS_SIDE_RIGHT, 5, 4, a.device, a.ld, x.device, 1, c.device, c.ld));
  CHECK(c.is([&](int i, int j) { return a(i, j) * x(j, 0); }));
}

void statuses() {
  Matrix<float> a(4, 4);
  const float one = 1;
  CHECK(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, 4, a.device, 4, &one, a.device, 4) ==
        CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSgemm(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, 3, a.device, 4, &one, a.device, 4) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasGemmEx(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.device, CUDA_R_64F, 4, a.device, CUDA_R_32F,
                     4, &one, a.device, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
  BLAS(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_DEVICE));
  CHECK(cublasDotEx(handle(), 4, a.device, CUDA_R_32F, 1, a.device, CUDA_R_32F, 1, a.device, CUDA_C_16F, CUDA_R_32F) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  BLAS(cublasSetPointerMode(handle(), CUBLAS_POINTER_MODE_HOST));
  CHECK(cublasAxpyEx(handle(), 2, &one, CUDA_R_32F, a.device, CUDA_C_32F, 1, a.device, CUDA_R_32F, 1, CUDA_R_32F) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(std::string(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED)) == "CUBLAS_STATUS_NOT_SUPPORTED");
  int version = 0;
  BLAS(cublasGetVersion(handle(), &version));
  CHECK(version == CUBLAS_VERSION);
  std::vector<float> rows(8), back(8);
  for (int i = 0; i < 8; ++i) rows[i] = static_cast<float>(i);
  BLAS(cublasSetMatrix(2, 3, sizeof(float), rows.data(), 2, a.device, 4));
  BLAS(cublasGetMatrix(2, 3, sizeof(float), a.device, 4, back.data(), 2));
  CHECK(std::equal(rows.begin(), rows.begin() + 6, back.begin()));
}

/// Memory that nobody has written is no finding where a call does not read it.
void not_read() {
  float *fresh = nullptr, *unit = nullptr;
  CUDA(cudaMalloc(&fresh, 16 * sizeof(float)));
  CUDA(cudaMalloc(&unit, 4 * sizeof(float)));
  const float zero = 0, one = 1, three = 3;
  Matrix<float> b(2, 1, 0);
  BLAS(cublasStrsm(handle(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 4, 4, &zero,
                   nullptr, 4, fresh, 4));
  std::vector<float> now(16, 1);
  CUDA(cudaMemcpy(now.data(), fresh, 16 * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(now == std::vector<float>(16));
  CUDA(cudaMemcpy(unit + 1, &three, sizeof three, cudaMemcpyHostToDevice));  // L = 1, 0; 3, 1
  BLAS(cublasStrsm(handle(), CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 2, 1, &one, unit, 2,
                   b.device, 2));
  CHECK(b.is([&](int i, int) { return i == 0 ? b(0, 0) : b(1, 0) - 3.0 * b(0, 0); }));
  CUDA(cudaFree(fresh));
  CUDA(cudaFree(unit));
  Matrix<cuComplex> h(3, 3), x(3, 1);
  BLAS(cublasCher(handle(), CUBLAS_FILL_MODE_UPPER, 3, &one, x.device, 1, h.device, h.ld));
  CHECK(h.is(
      [&](int i, int j) {
        const Value sum = h(i, j) + x(i, 0) * std::conj(x(j, 0));
        return i == j ? Value(sum.real()) : sum;
      },
      CUBLAS_FILL_MODE_UPPER));
}

/// A batch of matrices with its array of pointers; `strong`: the large elements lie off the diagonal.
template <class T>
struct Batch {
  std::vector<std::unique_ptr<Matrix<T>>> all;
  T** device = nullptr;
  Batch(int count, int m, int n, bool strong) {
    std::vector<T*> list;
    for (int b = 0; b < count; ++b) {
      all.push_back(std::make_unique<Matrix<T>>(m, n));
      Matrix<T>& one = *all.back();
      for (int j = 0; strong && j < n; ++j) {
        T& x = one.host[static_cast<size_t>(j * one.ld + (j + 1) % n)];
        x = number<T>(value(x) + 10.0);
      }
      one.put();
      list.push_back(one.device);
    }
    CUDA(cudaMalloc(&device, list.size() * sizeof(T*)));
    CUDA(cudaMemcpy(device, list.data(), list.size() * sizeof(T*), cudaMemcpyHostToDevice));
  }
  ~Batch() { cudaFree(device); }
  Batch(const Batch&) = delete;
  Matrix<T>& operator[](int b) { return *all[static_cast<size_t>(b)]; }
  /// The device's element.
  Value now(int b, int i, int j) { return value((*this)[b].now()[static_cast<size_t>(j * (*this)[b].ld + i)]); }
};

template <class T>
struct Names;
#define NAMES(T, L)                                            \
  template <>                                                  \
  struct Names<T> {                                            \
    static constexpr auto getrf = cublas##L##getrfBatched;     \
    static constexpr auto getrs = cublas##L##getrsBatched;     \
    static constexpr auto getri = cublas##L##getriBatched;     \
    static constexpr auto matinv = cublas##L##matinvBatched;   \
    static constexpr auto geqrf = cublas##L##geqrfBatched;     \
    static constexpr auto gels = cublas##L##gelsBatched;       \
  }
NAMES(float, S);
NAMES(double, D);
NAMES(cuComplex, C);
NAMES(cuDoubleComplex, Z);

template <class T>
bool close(Value a, Value b) {
  constexpr bool kDouble = std::is_same_v<T, double> || std::is_same_v<T, cuDoubleComplex>;
  const double bound = (kDouble ? 2.3e-16 : 1.2e-7) * 2000;  // 5 rows, elements up to 13, sums of 5 products, twice
  if (std::abs(a - b) <= bound) return true;
  std::fprintf(stderr, "%g%+gi, expected %g%+gi\n", a.real(), a.imag(), b.real(), b.imag());
  return false;
}

/// L U is the matrix with its rows exchanged, inverses and solutions fit it, and a zero pivot is told.
template <class T>
void lu_of() {
  constexpr int n = 5, count = 3, columns = 2;
  Batch<T> a(count, n, n, true), b(count, n, columns, false), c(count, n, n, false), d(count, n, n, false);
  int *pivots = nullptr, *info = nullptr, host_info = -1;
  CUDA(cudaMalloc(&pivots, n * count * sizeof(int)));
  CUDA(cudaMalloc(&info, count * sizeof(int)));
  BLAS(Names<T>::matinv(handle(), n, a.device, a[0].ld, d.device, d[0].ld, info, count));
  BLAS(Names<T>::getrf(handle(), n, a.device, a[0].ld, pivots, info, count));
  BLAS(Names<T>::getri(handle(), n, a.device, a[0].ld, pivots, c.device, c[0].ld, info, count));
  int rows[n * count], infos[count];
  CUDA(cudaMemcpy(rows, pivots, sizeof rows, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(infos, info, sizeof infos, cudaMemcpyDeviceToHost));
  for (int k = 0; k < count; ++k) {
    CHECK(infos[k] == 0);
    int row[n] = {0, 1, 2, 3, 4};
    for (int i = 0; i < n; ++i) std::swap(row[i], row[rows[k * n + i] - 1]);
    CHECK(row[0] != 0);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        Value product = 0, by_c = 0, by_d = 0;
        for (int l = 0; l <= std::min(i, j); ++l) product += (l == i ? 1.0 : a.now(k, i, l)) * a.now(k, l, j);
        for (int l = 0; l < n; ++l) by_c += a[k](i, l) * c.now(k, l, j), by_d += a[k](i, l) * d.now(k, l, j);
        CHECK(close<T>(product, a[k](row[i], j)));
        CHECK(close<T>(by_c, i == j ? 1 : 0) && close<T>(by_d, i == j ? 1 : 0));
      }
  }
  for (const cublasOperation_t op : kOps) {
    for (int k = 0; k < count; ++k) b[k].put();
    BLAS(Names<T>::getrs(handle(), op, n, columns, a.device, a[0].ld, pivots, b.device, b[0].ld, &host_info, count));
    CHECK(host_info == 0);
    for (int k = 0; k < count; ++k)
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < columns; ++j) {
          Value sum = 0;
          for (int l = 0; l < n; ++l) sum += a[k].at(i, l, op) * b.now(k, l, j);
          CHECK(close<T>(sum, b[k](i, j)));
        }
  }
  for (T& x : a[1].host) x = number<T>(0);
  a[1].put();
  BLAS(Names<T>::getrf(handle(), n, a.device, a[0].ld, pivots, info, count));
  CUDA(cudaMemcpy(infos, info, sizeof infos, cudaMemcpyDeviceToHost));
  CHECK(infos[1] == 1);
  BLAS(Names<T>::getri(handle(), n, a.device, a[0].ld, pivots, c.device, c[0].ld, info, count));
  CUDA(cudaMemcpy(infos, info, sizeof infos, cudaMemcpyDeviceToHost));
  CHECK(infos[1] == 1);
  CUDA(cudaFree(pivots));
  CUDA(cudaFree(info));
}
void lu() { lu_of<float>(), lu_of<double>(), lu_of<cuComplex>(), lu_of<cuDoubleComplex>(); }

/// Q R is the matrix, and the rest of a least-squares solution is orthogonal to its columns.
template <class T>
void qr_of() {
  constexpr int m = 5, n = 3, count = 2, columns = 2;
  Batch<T> a(count, m, n, true), tau(count, n, 1, false), b(count, m, columns, false);
  int info = -1;
  BLAS(Names<T>::geqrf(handle(), m, n, a.device, a[0].ld, tau.device, &info, count));
  CHECK(info == 0);
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < n; ++j) {
      Value x[m] = {};
      for (int i = 0; i <= j; ++i) x[i] = a.now(k, i, j);
      for (int h = n - 1; h >= 0; --h) {  // x = H(h) x
        Value sum = x[h];
        for (int i = h + 1; i < m; ++i) sum += std::conj(a.now(k, i, h)) * x[i];
        sum *= tau.now(k, h, 0);
        x[h] -= sum;
        for (int i = h + 1; i < m; ++i) x[i] -= a.now(k, i, h) * sum;
      }
      for (int i = 0; i < m; ++i) CHECK(close<T>(x[i], a[k](i, j)));
    }
  for (int k = 0; k < count; ++k) a[k].put();
  int* infos = nullptr;
  CUDA(cudaMalloc(&infos, count * sizeof(int)));
  BLAS(Names<T>::gels(handle(), CUBLAS_OP_N, m, n, columns, a.device, a[0].ld, b.device, b[0].ld, &info, infos, count));
  int found[count] = {-1, -1};
  CUDA(cudaMemcpy(found, infos, sizeof found, cudaMemcpyDeviceToHost));
  CHECK(info == 0 && found[0] == 0 && found[1] == 0);
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < columns; ++j)
      for (int l = 0; l < n; ++l) {
        Value sum = 0;
        for (int i = 0; i < m; ++i) {
          Value rest = -b[k](i, j);
          for (int h = 0; h < n; ++h) rest += a[k](i, h) * b.now(k, h, j);
          sum += std::conj(a[k](i, l)) * rest;
        }
        CHECK(close<T>(sum, 0));
      }
  CHECK(Names<T>::gels(handle(), CUBLAS_OP_T, m, n, 1, a.device, a[0].ld, b.device, b[0].ld, &info, infos, count) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CUDA(cudaFree(infos));
}
void qr() { qr_of<float>(), qr_of<double>(), qr_of<cuComplex>(), qr_of<cuDoubleComplex>(); }

/// A stream may go before the handle that used it.
void destroyed_stream() {
  cudaStream_t stream = nullptr;
  cublasHandle_t own = nullptr;
  CUDA(cudaStreamCreate(&stream));
  BLAS(cublasCreate(&own));
  BLAS(cublasSetStream(own, stream));
  CUDA(cudaStreamDestroy(stream));
  BLAS(cublasDestroy(own));
  CUDA(cudaGetLastError());
}

/// A captured product runs again with the memory's later content.
void graph() {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t run = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Matrix<float> a(3, 3), c(3, 3);
  const float one = 1, zero = 0;
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  BLAS(cublasSetStream(handle(), stream));
  BLAS(cublasSgemm(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, a.device, a.ld, a.device, a.ld, &zero, c.device,
                   c.ld));
  CUDA(cudaStreamEndCapture(stream, &graph));
  CUDA(cudaGraphInstantiate(&run, graph, 0));
  for (float& x : a.host) x += 1;
  a.put();
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaGraphLaunch(run, stream));
  CUDA(cudaStreamSynchronize(stream));
  BLAS(cublasSetStream(handle(), nullptr));
  CHECK(c.is([&](int i, int j) {
    Value sum = 0;
    for (int l = 0; l < 3; ++l) sum += a(i, l) * a(l, j);
    return sum;
  }));
}

__global__ void fill_kernel(float* to, int count) {
  if (const int i = static_cast<int>(threadIdx.x); i < count) to[i] = 1;
}

int fault(const std::string& name) {
  Matrix<float> a(8, 8, 0), b(8, 8, 0), c(8, 8, 0);
  const float one = 1, zero = 0;
  const auto product = [&](const float* from, float* to) {
    return cublasSgemm(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, from, 8, b.device, 8, &zero, to, 8);
  };
  if (name == "beyond") std::puts(cublasGetStatusName(product(a.device + 1, c.device)));
  if (name == "overlap") std::puts(cublasGetStatusName(product(a.device, a.device)));
  if (name == "host") std::puts(cublasGetStatusName(product(a.host.data(), c.device)));
  if (name == "pointer_mode") std::puts(cublasGetStatusName(cublasSscal(handle(), 8, a.device, c.device, 1)));
  if (name == "array" || name == "null_in_array") {
    float* list[] = {name == "array" ? a.device : nullptr, b.device, c.device + (name == "array" ? 1 : 0)};
    float** device = nullptr;
    CUDA(cudaMalloc(&device, sizeof list));
    CUDA(cudaMemcpy(device, list, sizeof list, cudaMemcpyHostToDevice));
    // The call may know of its failure already: the array is read when the stream gets there.
    const cublasStatus_t status = cublasSgemmBatched(handle(), CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, device, 8,
                                                     device + 1, 8, &zero, device + 2, 8, 1);
    CHECK(status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_EXECUTION_FAILED);
    std::puts(cudaGetErrorName(cudaDeviceSynchronize()));
  }
  if (name == "uninitialised") {
    float* fresh = nullptr;
    CUDA(cudaMalloc(&fresh, 64 * sizeof(float)));
    BLAS(product(fresh, c.device));
    CUDA(cudaDeviceSynchronize());
  }
  if (name == "unordered" || name == "ordered") {  // a kernel writes A while the product reads it
    cudaStream_t one_stream = nullptr, two = nullptr;
    cudaEvent_t event = nullptr;
    CUDA(cudaStreamCreateWithFlags(&one_stream, cudaStreamNonBlocking));
    CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaDeviceSynchronize());  // a copy from pageable memory may still be under way
    BLAS(cublasSetStream(handle(), two));
    fill_kernel<<<1, 64, 0, one_stream>>>(a.device, 64);
    CUDA(cudaEventRecord(event, one_stream));
    if (name == "ordered") CUDA(cudaStreamWaitEvent(two, event));
    BLAS(product(a.device, c.device));
    CUDA(cudaDeviceSynchronize());
  }
  if (name == "not_emulated") {
    float d = 1, x = 1, y = 1, s = 0;
    std::puts(cublasGetStatusName(cublasSrotg(handle(), &d, &x, &y, &s)));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "fault") return fault(argv[2]);
  const std::pair<const char*, void (*)()> checks[] = {{"gemm", gemm},
                                                       {"scalars_on_the_device", scalars_on_the_device},
                                                       {"batches", batches},
                                                       {"vectors", vectors},
                                                       {"level_2", level_2},
                                                       {"level_3", level_3},
                                                       {"lu", lu},
                                                       {"qr", qr},
                                                       {"destroyed_stream", destroyed_stream},
                                                       {"graph", graph},
                                                       {"statuses", statuses},
                                                       {"not_read", not_read}};
  for (const auto& [name, check] : checks) {
    if (!what.empty() && what != name) continue;
    check();
    std::printf("%s: right\n", name);
  }
  BLAS(cublasDestroy(handle()));
}
