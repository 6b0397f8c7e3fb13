// SPDX-License-Identifier: Apache-2.0
// Factorisations: their products give the matrices back, and the factors have the form that the contract names.
#include "kernels/contracts/linalg.h"

#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

constexpr int64_t kBatch = 3;
using Values = std::vector<double>;

/// a [B, M, K] b [B, K, N], or a b^T for b [B, N, K].
Values product(const Values& a, const Values& b, int64_t M, int64_t K, int64_t N, bool transposed = false) {
  Values y(static_cast<size_t>(kBatch * M * N));
  for (int64_t i = 0; i < kBatch * M; ++i)
    for (int64_t j = 0; j < N; ++j)
      for (int64_t k = 0; k < K; ++k) {
        const int64_t in_b = i / M * K * N + (transposed ? j * K + k : k * N + j);
        y[static_cast<size_t>(i * N + j)] += a[static_cast<size_t>(i * K + k)] * b[static_cast<size_t>(in_b)];
      }
  return y;
}

Values scaled_columns(Values a, const Values& s, int64_t M, int64_t K) {
  for (int64_t i = 0; i < kBatch * M * K; ++i)
    a[static_cast<size_t>(i)] *= s[static_cast<size_t>(i / (M * K) * K + i % K)];
  return a;
}

/// Symmetric and positive-definite.
Values definite(int64_t N) {
  const Values x = uniform(kBatch * N * N);
  Values y = product(x, x, N, N, N, true);
  for (int64_t i = 0; i < kBatch * N; ++i) y[static_cast<size_t>(i * N + i % N)] += 1;
  return y;
}

/// Zeros on one side of the diagonal of [B, M, N].
Values triangle(Values a, int64_t M, int64_t N, bool upper) {
  for (int64_t i = 0; i < kBatch * M; ++i)
    for (int64_t j = 0; j < N; ++j)
      if (upper ? j < i % M : j > i % M) a[static_cast<size_t>(i * N + j)] = 0;
  return a;
}

/// Calls body(device, dtype, M, N) for matrices of one, of both long forms and square ones. cuSOLVER's Jacobi iteration
/// takes those of up to 32 rows and columns.
template <class Body>
void each_form(const Body& body) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64})
      for (const auto& [M, N] :
           {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {3, 7}, {6, 6}, {40, 33}, {33, 40}, {36, 36}}) {
        SCOPED_TRACE(::testing::Message() << dtype << ' ' << M << " x " << N);
        body(kind, dtype, M, N);
      }
}

TEST(LinearAlgebra, SvdAndQr) {
  if (!WEFT_HAVE_LAPACKE) GTEST_SKIP() << "needs a build with LAPACKE; this one has its stub";
  each_form([](DeviceKind kind, DType dtype, int64_t M, int64_t N) {
    const int64_t K = std::min(M, N);
    const Values x = uniform(kBatch * M * N, dtype);
    const DeviceArray u(kind, dtype, {kBatch, M, K}), s(kind, dtype, {kBatch, K}), vh(kind, dtype, {kBatch, K, N});
    kernels::svd(queue_on(kind), u, s, vh, DeviceArray(kind, dtype, {kBatch, M, N}, x));
    EXPECT_TRUE(near(product(scaled_columns(u.host(), s.host(), M, K), vh.host(), M, K, N), x, tolerance(dtype, 50)));
    for (int64_t i = 1; i < kBatch * K; ++i) {
      if (i % K == 0) continue;  // the next matrix
      EXPECT_GE(s.host()[static_cast<size_t>(i - 1)], s.host()[static_cast<size_t>(i)]);
    }
    const DeviceArray q(kind, dtype, {kBatch, M, K}), r(kind, dtype, {kBatch, K, N});
    kernels::qr(queue_on(kind), q, r, DeviceArray(kind, dtype, {kBatch, M, N}, x));
    EXPECT_TRUE(near(product(q.host(), triangle(r.host(), K, N, true), M, K, N), x, tolerance(dtype, 50)));
    EXPECT_EQ(triangle(r.host(), K, N, true), r.host());
  });
}

TEST(LinearAlgebra, SquareMatrices) {
  if (!WEFT_HAVE_LAPACKE) GTEST_SKIP() << "needs a build with LAPACKE; this one has its stub";
  each_form([](DeviceKind kind, DType dtype, int64_t M, int64_t N) {
    if (M != N) return;
    const kernels::Queue queue = queue_on(kind);
    const Sizes square{kBatch, N, N};
    const Values x = definite(N), b = uniform(kBatch * N * 2, dtype);
    const DeviceArray given(kind, dtype, square, x), right(kind, dtype, {kBatch, N, 2}, b);
    const DeviceArray w(kind, dtype, {kBatch, N}), v(kind, dtype, square), l(kind, dtype, square);
    kernels::eigh(queue, w, v, given);
    EXPECT_TRUE(
        near(product(scaled_columns(v.host(), w.host(), N, N), v.host(), N, N, N, true), x, tolerance(dtype, 50)));
    kernels::cholesky(queue, l, given);
    EXPECT_EQ(triangle(l.host(), N, N, false), l.host());
    EXPECT_TRUE(near(product(l.host(), l.host(), N, N, N, true), x, tolerance(dtype, 50)));
    const DeviceArray y(kind, dtype, {kBatch, N, 2}), z(kind, dtype, {kBatch, N, 2});
    kernels::solve(queue, y, given, right);
    EXPECT_TRUE(near(product(x, y.host(), N, N, 2), b, tolerance(dtype, 50).times(100)));  // 100: the condition number
    for (const bool upper : {false, true}) {
      kernels::triangular_solve(queue, z, given, right, upper);
      EXPECT_TRUE(near(product(triangle(x, N, N, upper), z.host(), N, N, 2), b, tolerance(dtype, 50).times(100)));
    }
    // The determinant of l l^T, by the pivots.
    const DeviceArray lu(kind, dtype, square), parity(kind, dtype, {kBatch});
    kernels::lu(queue, lu, parity, given);
    Values got(parity.host()), want(kBatch, 1);
    for (int64_t i = 0; i < kBatch * N; ++i) {
      const auto at = static_cast<size_t>(i * N + i % N), matrix = static_cast<size_t>(i / N);
      got[matrix] *= lu.host()[at];
      want[matrix] *= l.host()[at] * l.host()[at];
    }
    EXPECT_TRUE(near(got, want, tolerance(dtype, 50).times(100)));
  });
}

}  // namespace
}  // namespace weft::tests
