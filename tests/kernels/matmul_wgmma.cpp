// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/cuda/wgmma_plan.h"
#include "kernels/matmul.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

// Products on TMA and wgmma (kernels/cuda/gemm_wgmma.cuh), each way of cutting them into tiles on sizes that the
// emulator can afford.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::Grad;
using kernels::View;
using kernels::WgmmaPlan;
using kernels::WgmmaPlanScope;
using enum WgmmaPlan::Tile;

struct Case {
  int64_t B, M, N, K;
  DType in = DType::bf16, out = DType::bf16;
  bool transpose_a = false, transpose_b = false, bias = false, broadcast_a = false, broadcast_b = false;
  Activation activation = Activation::none;
  bool pre = false, residual = false;
  Grad grad = Grad::overwrite;
};

/// A factor whose lines begin at multiples of 16 bytes: [batch, rows, columns], stored transposed or not.
struct Factor {
  std::vector<double> values;  ///< [batch, rows, columns]
  DeviceArray array;
  View view;

  Factor(DeviceKind kind, DType dtype, int64_t batch, int64_t rows, int64_t columns, bool transposed)
      : values(uniform(batch * rows * columns, dtype)),
        array(kind, dtype, {batch, transposed ? columns : rows, pitch(transposed ? rows : columns)}),
        view(array.view()) {
    const int64_t lines = transposed ? columns : rows, line = pitch(transposed ? rows : columns);
    std::vector<double> stored(static_cast<size_t>(batch * lines * line), NAN);  // what lies between lines
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          stored[(b * lines + (transposed ? j : i)) * line + (transposed ? i : j)] = at(b, i, j, rows, columns);
    array.write(stored);
    view.sizes = {batch, rows, columns};
    view.strides = {lines * line, transposed ? 1 : line, transposed ? line : 1};
  }

  double at(int64_t b, int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    return values[(b * rows + i) * columns + j];
  }
  View broadcast(int64_t batch) const {
    View wide = view;
    wide.sizes[0] = batch;
    wide.strides[0] = 0;
    return wide;
  }
  static int64_t pitch(int64_t line) { return (line + 7) / 8 * 8; }
};

double value_of(Activation activation, double s) {
  if (activation == Activation::relu) return s > 0 ? s : 0;
  if (activation == Activation::gelu) return 0.5 * s * (1 + std::erf(s / std::sqrt(2.0)));
  if (activation == Activation::gelu_tanh)
    return 0.5 * s * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (s + 0.044715 * s * s * s)));
  return s;
}

void check(DeviceKind kind, const Case& c) {
  SCOPED_TRACE(str("B ", c.B, " M ", c.M, " N ", c.N, " K ", c.K, " ", c.in, "->", c.out, " ta ", c.transpose_a, " tb ",
                   c.transpose_b, " bias ", c.bias, " broadcast ", c.broadcast_a, c.broadcast_b, " activation ",
                   static_cast<int>(c.activation), " pre ", c.pre, " residual ", c.residual, " accumulate ",
                   c.grad == Grad::accumulate, " on ", name(kind)));
  const Factor a(kind, c.in, c.broadcast_a ? 1 : c.B, c.M, c.K, c.transpose_a),
      b(kind, c.in, c.broadcast_b ? 1 : c.B, c.K, c.N, c.transpose_b);
  const int64_t count = c.B * c.M * c.N;
  const auto bias = uniform(c.N, c.out), old = uniform(count, c.out, 2, 3);
  const DeviceArray bias_array(kind, c.out, {c.N}, bias), old_array(kind, c.out, {c.B, c.M, c.N}, old);
  DeviceArray y(kind, c.out, {c.B, c.M, c.N}), pre(kind, c.out, {c.B, c.M, c.N});
  const View a_view = c.broadcast_a ? a.broadcast(c.B) : a.view, b_view = c.broadcast_b ? b.broadcast(c.B) : b.view,
             bias_view = c.bias ? bias_array.view() : View::none();
  constexpr double kAlpha = 0.5;
  if (c.grad == Grad::accumulate) {
    y.write(old);
    kernels::matmul(queue_on(kind), y, a_view, b_view, bias_view, {kAlpha, c.grad});
  } else {
    kernels::matmul_fused(queue_on(kind), y, c.pre ? pre.view() : View::none(), a_view, b_view, bias_view,
                          c.residual ? old_array.view() : View::none(), {kAlpha, c.activation});
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
        want[at] = value_of(c.activation, sums[at]) + (c.residual || c.grad == Grad::accumulate ? old[at] : 0);
      }
    }
  EXPECT_TRUE(near(y.host(), want, tolerance(c.out, c.K)));
  if (c.pre) {
    EXPECT_TRUE(near(pre.host(), sums, tolerance(c.out, c.K)));
  }
}

/// The same, cut in this way, which must have been taken.
void check(DeviceKind kind, const Case& c, const WgmmaPlan& plan) {
  SCOPED_TRACE(str("tile ", static_cast<int>(plan.tile), ", ", plan.splits, " shares, cluster ", plan.cluster));
  const WgmmaPlanScope scope(plan);
  check(kind, c);
  EXPECT_EQ(scope.uses(), 1);
}

constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh};

TEST(MatmulWgmma, EveryTileInEveryLayout) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 1}, {large, 2}})
      for (const bool transpose_a : {false, true})
        for (const bool transpose_b : {false, true})
          check(kind,
                {1, pick(1, 300), pick(1, 300), pick(1, 200), transpose_a ? DType::f16 : DType::bf16,
                 transpose_b ? DType::f32 : (transpose_a ? DType::f16 : DType::bf16), transpose_a, transpose_b, true},
                {.tile = tile, .cluster = cluster});
  });
}

TEST(MatmulWgmma, MoreStepsThanStages) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 2}, {large, 2}})
      check(kind, {1, 130, 72, 64 * 9 + 8}, {.tile = tile, .cluster = cluster});
  });
}

TEST(MatmulWgmma, EveryEpilogue) {
  on_wgmma([](DeviceKind kind) {
    for (const DType out : {DType::bf16, DType::f32})
      for (const Activation activation : kActivations)
        for (const int64_t n : {72, 70, 69})  // lines for TMA, for pairs, and for neither
          check(kind, {2, 65, n, 72, DType::bf16, out, false, true, true, false, false, activation, n != 70, n != 72},
                {.tile = activation == Activation::relu ? small : medium});
  });
}

TEST(MatmulWgmma, Accumulates) {
  on_wgmma([](DeviceKind kind) {
    for (const int64_t n : {200, 201})
      for (const DType out : {DType::bf16, DType::f32})
        check(kind, {.B = 1, .M = 90, .N = n, .K = 80, .out = out, .bias = true, .grad = Grad::accumulate},
              {.tile = large});
  });
}

TEST(MatmulWgmma, BatchesAndBroadcasts) {
  on_wgmma([](DeviceKind kind) {
    for (const bool a : {false, true})
      for (const bool b : {false, true})
        check(kind, {.B = 3, .M = 70, .N = 136, .K = 40, .broadcast_a = a, .broadcast_b = b},
              {.tile = a ? small : medium, .cluster = 2});
  });
}

TEST(MatmulWgmma, SharedOutDepth) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [n, splits] : {std::pair{72, 3}, {69, 5}})
      for (const bool transpose : {false, true})
        check(kind,
              {.B = 1,
               .M = 100,
               .N = n,
               .K = 650,
               .transpose_a = transpose,
               .transpose_b = !transpose,
               .bias = true,
               .activation = Activation::gelu,
               .pre = true,
               .residual = true},
              {.tile = transpose ? small : medium, .splits = splits});
  });
}

TEST(MatmulWgmma, TheSameBitsInEveryRun) {
  on_wgmma([](DeviceKind kind) {
    const Factor a(kind, DType::bf16, 1, 60, 1500, false), b(kind, DType::bf16, 1, 1500, 56, false);
    std::vector<double> first;
    for (int run = 0; run < 2; ++run) {
      DeviceArray y(kind, DType::f32, {1, 60, 56});
      kernels::matmul(queue_on(kind), y, a.view, b.view, View::none(), {});
      if (run == 0)
        first = y.host();
      else
        EXPECT_EQ(y.host(), first);
    }
  });
}

TEST(MatmulWgmma, PlansFollowTheSizes) {
  const auto plan = [](int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
    return kernels::wgmma_plan(m, n, (k + 63) / 64, batch, batch == 1);
  };
  EXPECT_EQ(plan(8192, 8192, 8192).tile, large);
  EXPECT_EQ(plan(8192, 8192, 8192).cluster, 2);
  EXPECT_EQ(plan(8192, 8192, 8192).splits, 1);
  EXPECT_EQ(plan(1024, 1024, 1024).tile, medium);
  EXPECT_EQ(plan(64, 64, 64).tile, small);
  EXPECT_GT(plan(64, 64, 65536).splits, 1);     // one tile, a deep sum
  EXPECT_EQ(plan(64, 64, 65536, 2).splits, 1);  // batches are not shared out
  EXPECT_EQ(plan(384, 384, 50432).tile, plan(384, 384, 50432).tile);
  const WgmmaPlan deep = plan(1152, 384, 50432);
  EXPECT_GE(int64_t{deep.share} * deep.splits, (50432 + 63) / 64);        // nothing is left out
  EXPECT_LT(int64_t{deep.share} * (deep.splits - 1), (50432 + 63) / 64);  // and no share is empty
}

TEST(MatmulWgmma, OddLinesTakeTheOtherKernel) {
  on_wgmma([](DeviceKind kind) {
    const auto a = uniform(10 * 9, DType::bf16), b = uniform(9 * 8, DType::bf16);
    const DeviceArray a_array(kind, DType::bf16, {1, 10, 9}, a), b_array(kind, DType::bf16, {1, 9, 8}, b);
    DeviceArray y(kind, DType::bf16, {1, 10, 8});
    const WgmmaPlanScope scope({});
    kernels::matmul(queue_on(kind), y, a_array, b_array, View::none(), {});
    std::vector<double> want(80);
    for (int i = 0; i < 80; ++i)
      for (int k = 0; k < 9; ++k) want[i] += a[i / 8 * 9 + k] * b[k * 8 + i % 8];
    EXPECT_TRUE(near(y.host(), want, tolerance(DType::bf16, 9)));
    EXPECT_EQ(scope.uses(), 0);
  });
}

}  // namespace
}  // namespace weft::tests
