// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/contracts/matmul.h"
#include "kernels/runtime/capability_scope.h"
#include "tests/support/compare.h"
#include "tests/support/devices.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::View;

enum class Residual { none, other, y_itself };

struct FusedCase {
  int64_t B, M, N, K;
  DType in, out;
  Activation activation;
  bool pre = true;
  Residual residual = Residual::none;
  bool bias = true, transpose_a = false, transpose_b = false;
  double alpha = 1;
};

double value_of(Activation activation, double s) {
  if (activation == Activation::relu) return s > 0 ? s : 0;
  if (activation == Activation::gelu) return 0.5 * s * (1 + std::erf(s / std::sqrt(2.0)));
  if (activation == Activation::gelu_tanh)
    return 0.5 * s * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (s + 0.044715 * s * s * s)));
  return s;
}

void check(DeviceKind kind, const FusedCase& c) {
  SCOPED_TRACE(str("B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K, " ", c.in, "->", c.out, " activation ",
                   static_cast<int>(c.activation), " pre ", c.pre, " residual ", static_cast<int>(c.residual), " bias ",
                   c.bias, " ta ", c.transpose_a, " tb ", c.transpose_b, " on ", name(kind)));
  const int64_t count = c.B * c.M * c.N;
  const auto a = uniform(c.B * c.M * c.K, c.in), b = uniform(c.B * c.K * c.N, c.in), bias = uniform(c.N, c.out);
  const auto residual = uniform(count, c.out, 2, 3);
  const DeviceArray a_array(kind, c.in, {c.B, c.M, c.K}, a), b_array(kind, c.in, {c.B, c.K, c.N}, b),
      bias_array(kind, c.out, {c.N}, bias), residual_array(kind, c.out, {c.B, c.M, c.N}, residual);
  DeviceArray y(kind, c.out, {c.B, c.M, c.N}), pre(kind, c.out, {c.B, c.M, c.N});
  if (c.residual == Residual::y_itself) y.write(residual);
  View a_view = a_array.view(), b_view = b_array.view();
  if (c.transpose_a) a_view.strides = {c.M * c.K, 1, c.M};
  if (c.transpose_b) b_view.strides = {c.K * c.N, 1, c.K};
  kernels::matmul_fused(queue_on(kind), y, c.pre ? pre.view() : View::none(), a_view, b_view,
                        c.bias ? bias_array.view() : View::none(),
                        c.residual == Residual::none    ? View::none()
                        : c.residual == Residual::other ? residual_array.view()
                                                        : y.view(),
                        {c.alpha, c.activation});
  std::vector<double> sums(count), want(count), sizes(count), before(count);
  for (int64_t n = 0; n < c.B; ++n)
    for (int64_t i = 0; i < c.M; ++i)
      for (int64_t j = 0; j < c.N; ++j) {
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < c.K; ++k) {
          const double term = a[n * c.M * c.K + (c.transpose_a ? k * c.M + i : i * c.K + k)] *
                              b[n * c.K * c.N + (c.transpose_b ? j * c.K + k : k * c.N + j)];
          sum += term;
          squares += term * term;
        }
        const int64_t at = (n * c.M + i) * c.N + j;
        sums[at] = c.alpha * sum + (c.bias ? bias[j] : 0);
        want[at] = value_of(c.activation, sums[at]) + (c.residual == Residual::none ? 0 : residual[at]);
        // Where numbers cancel, their own roundings stay; GELU of a negative number has those of 1 + erf or tanh.
        before[at] =
            std::max({std::abs(sums[at]), std::abs(c.alpha) * std::sqrt(squares), c.bias ? std::abs(bias[j]) : 0});
        sizes[at] = std::max(std::abs(want[at]), c.activation == Activation::relu && sums[at] < 0 ? 0 : before[at]);
      }
  EXPECT_TRUE(near(y.host(), want, tolerance(c.out, c.K), sizes));
  if (c.pre) {
    EXPECT_TRUE(near(pre.host(), sums, tolerance(c.out, c.K), before));
  }
}

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh};

TEST(MatmulFused, EveryActivationInEveryType) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Activation activation : kActivations)
        check(kind, {pick(1, 3), pick(1, 70), pick(1, 70), pick(1, 90), dtype, dtype, activation, pick(0, 1) == 1});
}

TEST(MatmulFused, ResidualAlsoInPlace) {
  const kernels::CapabilityScope ampere(80);  // Hopper's kernel has tests of its own
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const bool pre : {false, true})
        for (const Residual residual : {Residual::other, Residual::y_itself})
          for (const int64_t n : {40, 37})
            check(kind, {2, 35, n, 48, dtype, dtype, Activation::gelu, pre, residual, pre, false, n == 40, 0.5});
}

TEST(MatmulFused, OnCpuInSeveralSlices) {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const Residual residual : {Residual::other, Residual::y_itself})
      check(DeviceKind::cpu, {1, 50, 800, 400, dtype, dtype, Activation::gelu, true, residual});
}

TEST(MatmulFused, SharedOutDepth) {  // few sums, long ones: shares of k, then the epilogue
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const int64_t n : {24, 21})
      check(kind, {1, 30, n, 1100, DType::bf16, DType::bf16, Activation::gelu_tanh, true, Residual::other});
}

TEST(MatmulFused, HalvesIntoF32) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      check(kind, {1, 70, 136, 72, dtype, DType::f32, Activation::relu, true, Residual::other, true, true, true});
}

TEST(MatmulFused, SumsAreNotRoundedBeforeTheResidual) {  // which takes away what a rounding would leave
  constexpr int64_t kRows = 30, kColumns = 40;
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const bool kept : {false, true}) {
        const auto a = uniform(kRows, dtype), b = uniform(kColumns, dtype);
        std::vector<double> products(kRows * kColumns);
        for (int64_t i = 0; i < kRows * kColumns; ++i) products[i] = a[i / kColumns] * b[i % kColumns];
        const DeviceArray a_array(kind, dtype, {1, kRows, 1}, a), b_array(kind, dtype, {1, 1, kColumns}, b);
        DeviceArray y(kind, dtype, {1, kRows, kColumns}), pre(kind, dtype, {1, kRows, kColumns}, products);
        std::vector<double> want = pre.host();  // rounded to the dtype
        DeviceArray residual(kind, dtype, {1, kRows, kColumns});
        for (double& value : want) value = -value;
        residual.write(want);
        for (int64_t i = 0; i < kRows * kColumns; ++i) want[i] += products[i];
        kernels::matmul_fused(queue_on(kind), y, kept ? pre.view() : View::none(), a_array, b_array, View::none(),
                              residual, {});
        EXPECT_TRUE(near(y.host(), want, tolerance(dtype)));
      }
}

TEST(MatmulFused, SaysWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray a(kind, DType::f32, {1, 2, 3}), b(kind, DType::f32, {1, 3, 4}), y(kind, DType::f32, {1, 2, 4}),
        wrong(kind, DType::bf16, {1, 2, 4});
    EXPECT_EQ(
        error_text([&] { kernels::matmul_fused(queue_on(kind), y, View::none(), a, b, View::none(), wrong, {}); }),
        "matmul_fused: expected pre and residual laid out as f32[1,2,4], got f32[] and bf16[1,2,4]");
  }
}

}  // namespace
}  // namespace weft::tests
