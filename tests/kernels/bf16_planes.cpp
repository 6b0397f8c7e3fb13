// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/f32_products.h"

#include <array>
#include <cmath>
#include <iostream>
#include <random>

#include "kernels/contracts/linear.h"
#include "kernels/contracts/matmul.h"
#include "kernels/half.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"

// Products of f32 by planes of bf16: equal to f64 sums of the terms that split3 and split6 name, and as near to the
// exact product as those terms allow.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::F32Products;
using kernels::F32ProductsScope;
using kernels::View;

constexpr F32Products kSplits[] = {F32Products::split3, F32Products::split6};

double to_bf16(double value) { return static_cast<double>(static_cast<float>(bf16(static_cast<float>(value)))); }

std::array<double, 3> planes(double value) {
  const double first = to_bf16(value), second = to_bf16(value - first);
  return {first, second, to_bf16(value - first - second)};
}

/// a b as the terms say.
double planes_product(F32Products how, double a, double b) {
  const auto x = planes(a), y = planes(b);
  const double three = x[0] * y[0] + x[0] * y[1] + x[1] * y[0];
  return how == F32Products::split3 ? three : three + x[1] * y[1] + x[0] * y[2] + x[2] * y[0];
}

/// Relative to the sum of |a b|: what the left-out terms may be. A plane's rest is at most 2^-8 of it.
double planes_bound(F32Products how) { return 1.01 * (how == F32Products::split3 ? 3 * 0x1p-16 : 4 * 0x1p-24); }

struct PlanesCase {
  int64_t B, M, N, K;
  bool transpose_a = false, transpose_b = false, broadcast_b = false, odd_pitch = false;
};

/// A factor [B, rows, columns], stored as that or transposed, with lines of one element more where `odd` is set.
struct PlanesFactor {
  PlanesFactor(DeviceKind kind, int64_t B, int64_t rows, int64_t columns, bool transposed, bool odd)
      : PlanesFactor(uniform(B * rows * columns, DType::f32), kind, B, rows, columns, transposed, odd) {}
  PlanesFactor(std::vector<double> all, DeviceKind kind, int64_t B, int64_t rows, int64_t columns, bool transposed,
               bool odd)
      : values(std::move(all)),
        lines(transposed ? columns : rows),
        pitch((transposed ? rows : columns) + odd),
        array(kind, DType::f32, {B, lines, pitch}, stored(B, rows, columns, transposed)),
        view(array) {
    view.sizes = {B, rows, columns};
    view.strides = {lines * pitch, transposed ? 1 : pitch, transposed ? pitch : 1};
  }
  std::vector<double> stored(int64_t B, int64_t rows, int64_t columns, bool transposed) const {
    std::vector<double> all(static_cast<size_t>(B * lines * pitch), 99);
    for (int64_t n = 0; n < B; ++n)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          all[(n * lines + (transposed ? c : r)) * pitch + (transposed ? r : c)] = values[(n * rows + r) * columns + c];
    return all;
  }
  std::vector<double> values;
  int64_t lines, pitch;
  DeviceArray array;
  View view;
};

void check_planes(DeviceKind kind, F32Products how, const PlanesCase& c) {
  SCOPED_TRACE(str(kernels::kF32ProductsNames[static_cast<size_t>(how)], " B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K,
                   " ta ", c.transpose_a, " tb ", c.transpose_b, " on ", name(kind)));
  const PlanesFactor a(kind, c.B, c.M, c.K, c.transpose_a, c.odd_pitch),
      b(kind, c.broadcast_b ? 1 : c.B, c.K, c.N, c.transpose_b, c.odd_pitch);
  View b_view = b.view;
  if (c.broadcast_b) {
    b_view.sizes[0] = c.B;
    b_view.strides[0] = 0;
  }
  const auto bias = uniform(c.N, DType::f32), old = uniform(c.B * c.M * c.N, DType::f32);
  const DeviceArray bias_array(kind, DType::f32, {c.N}, bias), y(kind, DType::f32, {c.B, c.M, c.N}, old);
  const F32ProductsScope scope(how);
  kernels::matmul(queue_on(kind), y, a.view, b_view, bias_array, {.alpha = 0.5, .grad = kernels::Grad::accumulate});
  const auto got = y.host();
  std::vector<double> want(got.size()), sizes(got.size());
  for (int64_t i = 0; i < std::ssize(got); ++i) {
    const int64_t n = i / (c.M * c.N), m = i / c.N % c.M, o = i % c.N;
    double sum = 0, exact = 0, magnitude = 0, squares = 0;
    for (int64_t k = 0; k < c.K; ++k) {
      const double x = a.values[(n * c.M + m) * c.K + k], w = b.values[((c.broadcast_b ? 0 : n) * c.K + k) * c.N + o];
      const double term = kind == DeviceKind::cpu ? x * w : planes_product(how, x, w);
      sum += term;
      exact += x * w;
      magnitude += std::abs(x * w);
      squares += term * term;
    }
    want[i] = 0.5 * sum + bias[o] + old[i];
    sizes[i] = std::max(std::abs(want[i]), std::sqrt(squares));
    ASSERT_LE(std::abs(sum - exact), planes_bound(how) * magnitude) << "the terms of " << i;
  }
  EXPECT_TRUE(near(got, want, tolerance(DType::f32, 6 * c.K), sizes));
}

TEST(Bf16Planes, MatmulInEveryLayout) {
  on_both_generations([](DeviceKind kind) {
    for (const F32Products how : kSplits)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
          check_planes(kind, how, {1, 136, 128, 40, ta, tb});
          check_planes(kind, how, {2, 131, 129, 37, ta, tb, ta, true});
        }
  });
}

TEST(Bf16Planes, ALongDepthIsShared) {
  on_both_generations([](DeviceKind kind) {
    check_planes(kind, F32Products::split3, {1, 128, 136, 1500, false, true});
    check_planes(kind, F32Products::split6, {1, 128, 136, 1500, true, false});
  });
}

TEST(Bf16Planes, Epilogues) {
  constexpr int64_t M = 130, N = 136, K = 24;
  on_both_generations([](DeviceKind kind) {
    for (const F32Products how : kSplits) {
      const PlanesFactor a(kind, 1, M, K, false, false), b(kind, 1, K, N, true, false);
      const auto residual = uniform(M * N, DType::f32);
      const DeviceArray residual_array(kind, DType::f32, {1, M, N}, residual), y(kind, DType::f32, {1, M, N}),
          pre(kind, DType::f32, {1, M, N});
      const F32ProductsScope scope(how);
      kernels::matmul_fused(queue_on(kind), y, pre, a.view, b.view, View::none(), residual_array,
                            {.alpha = 1, .activation = Activation::relu});
      std::vector<double> want(M * N), want_pre(M * N);
      for (int64_t i = 0; i < M * N; ++i) {
        for (int64_t k = 0; k < K; ++k) {
          const double x = a.values[i / N * K + k], w = b.values[k * N + i % N];
          want_pre[i] += kind == DeviceKind::cpu ? x * w : planes_product(how, x, w);
        }
        want[i] = std::max(0.0, want_pre[i]) + residual[i];
      }
      EXPECT_TRUE(near(pre.host(), want_pre, tolerance(DType::f32, 6 * K)));
      EXPECT_TRUE(near(y.host(), want, tolerance(DType::f32, 6 * K)));
    }
  });
}

TEST(Bf16Planes, GradientsOfALinearLayer) {
  constexpr int64_t M = 150, I = 136, O = 131;
  on_both_generations([](DeviceKind kind) {
    for (const F32Products how : kSplits) {
      const PlanesFactor dy(kind, 1, M, O, false, false), x(kind, 1, M, I, false, false),
          w(kind, 1, O, I, false, false);
      const auto saved = uniform(M * I, DType::f32);
      const auto flat = [](View view) {
        view.rank = 2;
        view.sizes = {view.sizes[1], view.sizes[2]};
        view.strides = {view.strides[1], view.strides[2]};
        return view;
      };
      const DeviceArray saved_array(kind, DType::f32, {M, I}, saved), dx(kind, DType::f32, {M, I}),
          dw(kind, DType::f32, {O, I}), db(kind, DType::f32, {O});
      const F32ProductsScope scope(how);
      kernels::linear_backward_weight(queue_on(kind), dw, db, flat(dy.view), flat(x.view));
      kernels::linear_backward_input(queue_on(kind), dx, flat(dy.view), flat(w.view), saved_array, Activation::relu);
      const auto multiply = [&](double a, double b) {
        return kind == DeviceKind::cpu ? a * b : planes_product(how, a, b);
      };
      std::vector<double> want_dw(O * I), want_db(O), want_dx(M * I);
      for (int64_t m = 0; m < M; ++m)
        for (int64_t o = 0; o < O; ++o) {
          want_db[o] += dy.values[m * O + o];
          for (int64_t i = 0; i < I; ++i) {
            want_dw[o * I + i] += multiply(dy.values[m * O + o], x.values[m * I + i]);
            if (saved[m * I + i] > 0) want_dx[m * I + i] += multiply(dy.values[m * O + o], w.values[o * I + i]);
          }
        }
      EXPECT_TRUE(near(dw.host(), want_dw, tolerance(DType::f32, 6 * M)));
      EXPECT_TRUE(near(db.host(), want_db, tolerance(DType::f32, M))) << "sums of f32";
      EXPECT_TRUE(near(dx.host(), want_dx, tolerance(DType::f32, 6 * O)));
    }
  });
}

/// y = x times the identity.
std::vector<double> through_identity(DeviceKind kind, F32Products how, const std::vector<double>& values) {
  constexpr int64_t kSize = 128;
  std::vector<double> a(kSize * kSize), identity(kSize * kSize);
  for (size_t i = 0; i < values.size(); ++i) a[i * kSize] = values[i];  // one in each row, so that none meets another
  for (int64_t i = 0; i < kSize; ++i) identity[i * kSize + i] = 1;
  const DeviceArray a_array(kind, DType::f32, {1, kSize, kSize}, a), b(kind, DType::f32, {1, kSize, kSize}, identity),
      y(kind, DType::f32, {1, kSize, kSize});
  const F32ProductsScope scope(how);
  kernels::matmul(queue_on(kind), y, a_array, b, View::none(), {});
  const auto all = y.host();
  std::vector<double> got;
  for (size_t i = 0; i < values.size(); ++i) got.push_back(all[i * kSize]);
  return got;
}

/// The column "error" of docs/engines.md. Sums of tensor cores may round otherwise on a GPU than on the emulated one,
/// so the limits leave a third.
TEST(Bf16Planes, ErrorsOfTheTable) {
  constexpr int64_t M = 128, N = 128, K = 768;
  constexpr std::pair<F32Products, double> kTable[] = {
      {F32Products::exact, 8.3}, {F32Products::tf32, 4900}, {F32Products::split3, 75}, {F32Products::split6, 2.5}};
  std::mt19937_64 generator(7);
  std::normal_distribution<float> normal;
  std::vector<double> a(M * K), b(K * N), want(M * N);
  for (double& value : a) value = normal(generator);
  for (double& value : b) value = normal(generator);
  double squares = 0;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      double& sum = want[m * N + n];
      for (int64_t k = 0; k < K; ++k) sum += a[m * K + k] * b[n * K + k];
      squares += sum * sum;
    }
  on_both_generations([&](DeviceKind kind) {
    if (kind == DeviceKind::cpu) return;
    const DeviceArray a_array(kind, DType::f32, {1, M, K}, a), b_array(kind, DType::f32, {1, N, K}, b),
        y(kind, DType::f32, {1, M, N});
    View transposed = b_array;
    transposed.sizes = {1, K, N};
    transposed.strides = {N * K, 1, K};
    for (const auto& [how, error] : kTable) {
      const F32ProductsScope scope(how);
      kernels::matmul(queue_on(kind), y, a_array, transposed, View::none(), {});
      const auto got = y.host();
      double wrong = 0;
      for (size_t i = 0; i < got.size(); ++i) wrong += (got[i] - want[i]) * (got[i] - want[i]);
      const double measured = std::sqrt(wrong / squares) * 0x1p24;
      const std::string_view name = kernels::kF32ProductsNames[static_cast<size_t>(how)];
      std::cout << name << ": error " << measured << '\n';
      EXPECT_GT(measured, error / 1.33) << name;
      EXPECT_LT(measured, error * 1.33) << name;
    }
  });
}

TEST(Bf16Planes, EdgesOfTheRange) {
  const std::vector<double> values{
      0x1.fffffep127, -0x1.fffffep127, 0x1.ffp127, 0x1p-126, 1 + 0x1p-23, 0, INFINITY, NAN};
  on_both_generations([&](DeviceKind kind) {
    if (kind == DeviceKind::cpu) return;
    const auto got = through_identity(kind, F32Products::split6, values);
    for (size_t i = 0; i + 2 < values.size(); ++i) EXPECT_EQ(got[i], values[i]) << i;
    EXPECT_FALSE(std::isfinite(got[6])) << "an infinity stays an infinity or is NaN";
    EXPECT_TRUE(std::isnan(got[7]));
    const auto three = through_identity(kind, F32Products::split3, values);
    for (size_t i = 0; i + 2 < values.size(); ++i)
      EXPECT_LE(std::abs(three[i] - values[i]), 0x1p-16 * std::abs(values[i])) << i;
    EXPECT_FALSE(std::isfinite(three[6]));
    EXPECT_TRUE(std::isnan(three[7]));
  });
}

TEST(Bf16Planes, SmallProductsAreExact) {
  constexpr double kValue = 1 + 0x1p-20;
  for (const DeviceKind kind : test_devices())
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{127, 128}, {128, 127}}) {
      const DeviceArray a(kind, DType::f32, {1, rows, 1}, std::vector<double>(static_cast<size_t>(rows), kValue)),
          b(kind, DType::f32, {1, 1, columns}, std::vector<double>(static_cast<size_t>(columns), 1)),
          y(kind, DType::f32, {1, rows, columns});
      const F32ProductsScope scope(F32Products::split3);
      kernels::matmul(queue_on(kind), y, a, b, View::none(), {});
      EXPECT_EQ(y.host()[0], kValue);
    }
}

}  // namespace
}  // namespace weft::tests
