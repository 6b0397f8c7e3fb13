// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>

#include "kernels/contracts/matmul.h"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "kernels/runtime/f32_products.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/tf32.h"

namespace weft::tests {

/// One product on TMA and wgmma; f32 is computed as tf32.
struct WgmmaCase {
  int64_t B, M, N, K;
  DType in = DType::bf16, out = DType::bf16;
  bool transpose_a = false, transpose_b = false, bias = false, broadcast_a = false, broadcast_b = false;
  kernels::Activation activation = kernels::Activation::none;
  bool pre = false, residual = false;
  kernels::Grad grad = kernels::Grad::overwrite;
  int64_t gap = 0;  ///< elements between y's rows, which nothing may read or write
};

/// A factor whose lines begin at multiples of 16 bytes: [batch, rows, columns], stored transposed or not.
struct WgmmaFactor {
  std::vector<double> held;    ///< [batch, rows, columns]; f32: tf32::with_ties
  std::vector<double> values;  ///< values as tensor cores see them
  DeviceArray array;
  kernels::View view;

  WgmmaFactor(DeviceKind kind, DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed)
      : held(dtype == DType::f32 ? tf32::with_ties(batch * rows * columns) : uniform(batch * rows * columns, dtype)),
        values(held),
        array(kind, dtype, {batch, transposed ? columns : rows, pitch(transposed ? rows : columns, dtype)}),
        view(array.view()) {
    const int64_t lines = transposed ? columns : rows, line = pitch(transposed ? rows : columns, dtype);
    if (dtype == DType::f32)
      for (double& value : values) value = tf32::even(value);
    std::vector<double> stored(static_cast<size_t>(batch * lines * line), NAN);  // the gaps between lines, too
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          stored[(b * lines + (transposed ? j : i)) * line + (transposed ? i : j)] = held[(b * rows + i) * columns + j];
    array.write(stored);
    view.sizes = {batch, rows, columns};
    view.strides = {lines * line, transposed ? 1 : line, transposed ? line : 1};
  }

  double at(int64_t b, int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    return values[(b * rows + i) * columns + j];
  }
  kernels::View broadcast(int64_t batch) const {
    kernels::View wide = view;
    wide.sizes[0] = batch;
    wide.strides[0] = 0;
    return wide;
  }
  /// Elements: whole runs of 16 bytes.
  static int64_t pitch(int64_t line, DType dtype) {
    const int64_t run = 16 / static_cast<int64_t>(size_of(dtype));
    return (line + run - 1) / run * run;
  }
};

inline double activated(kernels::Activation activation, double s) {
  if (activation == kernels::Activation::relu) return s > 0 ? s : 0;
  if (activation == kernels::Activation::gelu) return 0.5 * s * (1 + std::erf(s / std::sqrt(2.0)));
  if (activation == kernels::Activation::gelu_tanh)
    return 0.5 * s * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (s + 0.044715 * s * s * s)));
  return s;
}

inline void check_wgmma(DeviceKind kind, const WgmmaCase& c) {
  SCOPED_TRACE(str("B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K, " ", c.in, "->", c.out, " ta ", c.transpose_a, " tb ",
                   c.transpose_b, " bias ", c.bias, " broadcast ", c.broadcast_a, c.broadcast_b, " activation ",
                   static_cast<int>(c.activation), " pre ", c.pre, " residual ", c.residual, " accumulate ",
                   c.grad == kernels::Grad::accumulate, " gap ", c.gap, " on ", name(kind)));
  const kernels::F32ProductsScope scope(kernels::tf32_if(c.in == DType::f32));
  const WgmmaFactor a(kind, c.in, c.broadcast_a ? 1 : c.B, c.M, c.K, c.transpose_a),
      b(kind, c.in, c.broadcast_b ? 1 : c.B, c.K, c.N, c.transpose_b);
  const int64_t count = c.B * c.M * c.N;
  const auto bias = uniform(c.N, c.out), old = uniform(count, c.out, 2, 3);
  const int64_t pitch = c.N + c.gap;
  const auto with_gaps = [&](const std::vector<double>& values) {
    std::vector<double> all(static_cast<size_t>(c.B * c.M * pitch), 77);
    for (int64_t i = 0; i < count; ++i) all[i / c.N * pitch + i % c.N] = values[i];
    return all;
  };
  const auto without_gaps = [&](const DeviceArray& array) {
    const auto all = array.host();
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[i] = all[i / c.N * pitch + i % c.N];
    for (int64_t i = 0; i < c.B * c.M * pitch; ++i)
      if (i % pitch >= c.N) {
        EXPECT_EQ(all[i], 77) << "in a gap";
      }
    return values;
  };
  const auto rows_of = [&](const DeviceArray& array) {
    kernels::View view = array;
    view.sizes[2] = c.N;
    return view;
  };
  const DeviceArray bias_array(kind, c.out, {c.N}, bias), old_array(kind, c.out, {c.B, c.M, pitch}, with_gaps(old));
  const std::vector<double> nothing = with_gaps(std::vector<double>(static_cast<size_t>(count), NAN));
  DeviceArray y(kind, c.out, {c.B, c.M, pitch}, nothing), pre(kind, c.out, {c.B, c.M, pitch}, nothing);
  const kernels::View a_view = c.broadcast_a ? a.broadcast(c.B) : a.view,
                      b_view = c.broadcast_b ? b.broadcast(c.B) : b.view,
                      bias_view = c.bias ? bias_array.view() : kernels::View::none();
  constexpr double kAlpha = 0.5;
  if (c.grad == kernels::Grad::accumulate) {
    y.write(with_gaps(old));
    kernels::matmul(queue_on(kind), rows_of(y), a_view, b_view, bias_view, {kAlpha, c.grad});
  } else {
    kernels::matmul_fused(queue_on(kind), rows_of(y), c.pre ? rows_of(pre) : kernels::View::none(), a_view, b_view,
                          bias_view, c.residual ? rows_of(old_array) : kernels::View::none(), {kAlpha, c.activation});
  }
  std::vector<double> sums(static_cast<size_t>(count)), want(sums.size());
  std::vector<double> row(static_cast<size_t>(c.N));
  for (int64_t n = 0; n < c.B; ++n)
    for (int64_t i = 0; i < c.M; ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      for (int64_t k = 0; k < c.K; ++k) {
        const double x = a.at(c.broadcast_a ? 0 : n, i, k, c.M, c.K);
        const double* const w = &b.values[((c.broadcast_b ? 0 : n) * c.K + k) * c.N];
        for (int64_t j = 0; j < c.N; ++j) row[j] += x * w[j];
      }
      for (int64_t j = 0; j < c.N; ++j) {
        const int64_t at = (n * c.M + i) * c.N + j;
        sums[at] = kAlpha * row[j] + (c.bias ? bias[j] : 0);
        want[at] =
            activated(c.activation, sums[at]) + (c.residual || c.grad == kernels::Grad::accumulate ? old[at] : 0);
      }
    }
  EXPECT_TRUE(near(without_gaps(y), want, tolerance(c.out, c.K)));
  if (c.pre) {
    EXPECT_TRUE(near(without_gaps(pre), sums, tolerance(c.out, c.K)));
  }
}

/// As above, with this plan, which must have been used.
inline void check_wgmma(DeviceKind kind, const WgmmaCase& c, const kernels::WgmmaPlan& plan) {
  SCOPED_TRACE(str("tile ", static_cast<int>(plan.tile), ", ", plan.splits, " shares, cluster ", plan.cluster));
  const kernels::WgmmaPlanScope scope(plan);
  check_wgmma(kind, c);
  EXPECT_EQ(scope.uses(), 1);
}

}  // namespace weft::tests
