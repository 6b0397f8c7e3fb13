// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/linear.h"

#include <cmath>
#include <optional>

#include "kernels/cuda/gemm/gemm_plan.h"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "tests/support/compare.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

// The gradients of a linear layer against f64, on every kernel that computes them: fma, mma.sync, and wgmma with each
// way of cutting the product into tiles.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::TileScope;
using kernels::TileSize;
using kernels::View;
using kernels::WgmmaPlan;
using kernels::WgmmaPlanScope;
using enum WgmmaPlan::Tile;

constexpr Activation kDerived[] = {Activation::relu, Activation::gelu, Activation::gelu_tanh};

double derivative(Activation f, double s) {
  constexpr double kPi = 3.14159265358979323846;
  if (f == Activation::relu) return s > 0 ? 1 : 0;
  if (f == Activation::gelu)
    return 0.5 * (1 + std::erf(s / std::sqrt(2.0))) + s * std::exp(-0.5 * s * s) / std::sqrt(2 * kPi);
  const double k = std::sqrt(2 / kPi), t = std::tanh(k * (s + 0.044715 * s * s * s));
  return 0.5 * (1 + t) + 0.5 * s * (1 - t * t) * k * (1 + 3 * 0.044715 * s * s);
}

/// [rows, columns] as [i, j] values, stored by rows or by columns, lines `pitch` apart with NaN between them.
struct Matrix {
  std::vector<double> values;
  DeviceArray array;
  View view;

  Matrix(DeviceKind kind, DType dtype, int64_t rows, int64_t columns, int64_t gap = 0, bool transposed = false)
      : values(uniform(rows * columns, dtype)),
        array(kind, dtype, {transposed ? columns : rows, (transposed ? rows : columns) + gap}),
        view(array.view()) {
    const int64_t lines = transposed ? columns : rows, pitch = (transposed ? rows : columns) + gap;
    std::vector<double> stored(static_cast<size_t>(lines * pitch), NAN);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        stored[transposed ? j * pitch + i : i * pitch + j] = values[i * columns + j];
    array.write(stored);
    view.sizes = {rows, columns};
    view.strides = {transposed ? 1 : pitch, transposed ? pitch : 1};
  }
};

struct Input {
  int64_t M, I, O;
  DType in = DType::bf16, out = DType::bf16;
  Activation f = Activation::gelu;
  bool transpose_w = false;
  int64_t gap = 0;
};

void check(DeviceKind kind, const Input& c) {
  SCOPED_TRACE(str("M ", c.M, " I ", c.I, " O ", c.O, " ", c.in, "->", c.out, " f ", static_cast<int>(c.f), " tw ",
                   c.transpose_w, " gap ", c.gap, " on ", name(kind)));
  const Matrix dy(kind, c.in, c.M, c.O, c.gap), w(kind, c.in, c.O, c.I, c.gap, c.transpose_w);
  const auto saved = uniform(c.M * c.I, c.out, -3, 3);
  const DeviceArray saved_array(kind, c.out, {c.M, c.I}, saved), dx(kind, c.out, {c.M, c.I});
  kernels::linear_backward_input(queue_on(kind), dx, dy.view, w.view, saved_array, c.f);
  std::vector<double> want(saved.size()), sizes(saved.size());
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t o = 0; o < c.O; ++o)
      for (int64_t i = 0; i < c.I; ++i) {
        const double term = dy.values[m * c.O + o] * w.values[o * c.I + i];
        want[m * c.I + i] += term;
        sizes[m * c.I + i] += term * term;
      }
  // Terms that cancel leave roundings of their own size, as do the 1 and the erf or tanh of a slope near its root.
  const bool of_gelu = c.f == Activation::gelu || c.f == Activation::gelu_tanh;
  for (size_t i = 0; i < want.size(); ++i) {
    const double slope = derivative(c.f, saved[i]), sum = std::max(std::abs(want[i]), std::sqrt(sizes[i]));
    want[i] *= slope;
    sizes[i] = sum * std::max(std::abs(slope), of_gelu ? 0.5 * (1 + std::abs(saved[i])) : 0.0);
  }
  EXPECT_TRUE(near(dx.host(), want, tolerance(c.out, c.O), sizes));
}

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

struct Weight {
  int64_t M, I, O;
  DType in = DType::bf16, dw = DType::bf16, db = DType::f32;
  int64_t gap = 0;
};

void check(DeviceKind kind, const Weight& c) {
  SCOPED_TRACE(
      str("M ", c.M, " I ", c.I, " O ", c.O, " ", c.in, "->", c.dw, ", ", c.db, " gap ", c.gap, " on ", name(kind)));
  const Matrix dy(kind, c.in, c.M, c.O, c.gap), x(kind, c.in, c.M, c.I, c.gap);
  const DeviceArray dw(kind, c.dw, {c.O, c.I}), db(kind, c.db, {c.O});
  kernels::linear_backward_weight(queue_on(kind), dw, db, dy.view, x.view);
  std::vector<double> want(static_cast<size_t>(c.O * c.I)), squares(want.size());
  std::vector<double> sums(static_cast<size_t>(c.O)), magnitudes(sums.size());
  for (int64_t m = 0; m < c.M; ++m)
    for (int64_t o = 0; o < c.O; ++o) {
      sums[o] += dy.values[m * c.O + o];
      magnitudes[o] += std::abs(dy.values[m * c.O + o]);
      for (int64_t i = 0; i < c.I; ++i) {
        const double term = dy.values[m * c.O + o] * x.values[m * c.I + i];
        want[o * c.I + i] += term;
        squares[o * c.I + i] += term * term;
      }
    }
  for (size_t i = 0; i < want.size(); ++i) squares[i] = std::max(std::abs(want[i]), std::sqrt(squares[i]));
  EXPECT_TRUE(near(dw.host(), want, tolerance(c.dw, c.M), squares));
  // One sum alone may happen to cancel more than a random walk of M terms does, and its roundings do not.
  const double cancels = norm_of(magnitudes) / (std::sqrt(static_cast<double>(c.M)) * norm_of(sums));
  EXPECT_TRUE(near(db.host(), sums, tolerance(c.db, c.M).times(std::max(1.0, cancels))));
}

/// As above on wgmma, with this plan, which must have been used.
template <class Case>
void check(DeviceKind kind, const Case& c, const WgmmaPlan& plan) {
  SCOPED_TRACE(str("tile ", static_cast<int>(plan.tile), ", ", plan.splits, " shares, cluster ", plan.cluster));
  const WgmmaPlanScope scope(plan);
  check(kind, c);
  EXPECT_EQ(scope.uses(), 1);
}

TEST(LinearBackward, InputInEveryTypeAndActivation) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Activation f : kDerived)
        for (const bool transpose_w : {false, true})
          check(kind, Input{pick(1, 70), pick(1, 70), pick(1, 90), dtype, dtype, f, transpose_w, pick(0, 3)});
  });
}

/// The derivative of a fused GELU of 16 bits is a short polynomial, too; near its root 3e-6 remain.
TEST(LinearBackward, SlopeOfGeluIsRightToTheRounding) {
  on_wgmma([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      constexpr int64_t kRows = 64, kColumns = 64, kDepth = 8;
      const auto saved = uniform(kRows * kColumns, dtype, -9, 9);
      const DeviceArray dy(kind, dtype, {kRows, kDepth}, std::vector<double>(kRows * kDepth, 0.25)),
          w(kind, dtype, {kDepth, kColumns}, std::vector<double>(kDepth * kColumns, 0.5)),
          x(kind, dtype, {kRows, kColumns}, saved), dx(kind, dtype, {kRows, kColumns});
      const WgmmaPlanScope scope({});
      kernels::linear_backward_input(queue_on(kind), dx, dy, w, x, Activation::gelu);
      EXPECT_EQ(scope.uses(), 1);
      const std::vector<double> got = dx.host();
      const double rounding = (dtype == DType::bf16 ? std::exp2(-8) : std::exp2(-11)) + std::exp2(-15);
      for (size_t i = 0; i < saved.size(); ++i) {
        const double want = derivative(Activation::gelu, saved[i]);
        ASSERT_NEAR(got[i], want, std::abs(want) * rounding + 3e-6) << saved[i] << ' ' << dtype;
      }
    }
  });
}

TEST(LinearBackward, InputByWholeVectorsIntoF32) {
  on_both_generations([](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const Activation f : kDerived) check(kind, Input{70, 136, 72, dtype, DType::f32, f});
  });
}

TEST(LinearBackward, InputOnCpuInSeveralSlices) {
  for (const DType dtype : {DType::f32, DType::f16})
    check(DeviceKind::cpu, Input{50, 800, 400, dtype, dtype, Activation::gelu});
}

TEST(LinearBackward, InputOfASharedOutDepth) {  // few sums, long ones
  on_both_generations([](DeviceKind kind) {
    for (const int64_t i : {24, 21})
      for (const DType dtype : {DType::f32, DType::bf16}) check(kind, Input{30, i, 1100, dtype, dtype});
  });
}

TEST(LinearBackward, WeightOfOneOutputWithGaps) {
  check(DeviceKind::cpu, Weight{.M = 11, .I = 59, .O = 1, .dw = DType::f32, .gap = 2});
}

TEST(LinearBackward, InputOfManyRowsOnTheCpu) {  // which takes them in slabs
  for (const Activation f : kDerived)
    check(DeviceKind::cpu, Input{530, 1000, 8, DType::bf16, DType::bf16, f, false, 3});
}

TEST(LinearBackward, InputOnEveryTileOfWgmma) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 2}})
      for (const int64_t i : {136, 137}) {  // through TMA, and by the lanes themselves
        Input c{.M = 150, .I = i, .O = 80, .transpose_w = i == 137};
        c.gap = i == 137 ? 2 : 0;  // lines of w begin at multiples of 16 bytes
        if (c.transpose_w) c.gap = 0;
        check(kind, c, {.tile = tile, .cluster = cluster});
        c.out = DType::f32;
        c.f = Activation::relu;
        check(kind, c, {.tile = tile, .cluster = cluster});
      }
    for (const Activation f : kDerived)  // several tiles of a block, of which the last reaches beyond dx
      for (const auto& [tile, cluster] : {std::pair{large, 2}, {ping_pong, 1}, {ping_pong, 2}})
        check(kind, Input{.M = 400, .I = 328, .O = 200, .f = f}, {.tile = tile, .cluster = cluster});
  });
}

TEST(LinearBackward, InputIsNotRoundedBeforeTheDerivative) {  // which would round 1 + 2^-9 to 1 in bf16
  constexpr double kSum = 1 + 0x1p-9;
  std::vector<double> saved, want;
  for (double s = -2; s < 2; s += 0x1p-6) {
    const double slope = derivative(Activation::gelu, s), right = rounded(kSum * slope, DType::bf16);
    // Where the two differ, and no rounding of the formula itself decides.
    const double low = rounded(kSum * slope * (1 - 0x1p-16), DType::bf16),
                 high = rounded(kSum * slope * (1 + 0x1p-16), DType::bf16);
    if (std::abs(slope) < 0.05 || low != high || right == rounded(slope, DType::bf16)) continue;
    saved.push_back(s);
    want.push_back(right);
  }
  const auto count = static_cast<int64_t>(saved.size());
  ASSERT_GT(count, 10);
  on_both_generations([&](DeviceKind kind) {
    const DeviceArray dy(kind, DType::bf16, {1, 2}, {1, 0x1p-9}),
        w(kind, DType::bf16, {2, count}, std::vector<double>(static_cast<size_t>(2 * count), 1.0)),
        saved_array(kind, DType::bf16, {1, count}, saved), dx(kind, DType::bf16, {1, count});
    kernels::linear_backward_input(queue_on(kind), dx, dy, w, saved_array, Activation::gelu);
    EXPECT_EQ(dx.host(), want);
  });
}

TEST(LinearBackward, ReluTakesItsResultAsWell) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray dy(kind, DType::f32, {1, 1}, {2}), w(kind, DType::f32, {1, 4}, {1, 2, 3, 4}),
        saved(kind, DType::f32, {1, 4}, {0, 5, 0, 1}), dx(kind, DType::f32, {1, 4});
    kernels::linear_backward_input(queue_on(kind), dx, dy, w, saved, Activation::relu);
    EXPECT_EQ(dx.host(), (std::vector<double>{0, 4, 0, 8}));
  }
}

TEST(LinearBackward, WeightInEveryType) {
  on_both_generations([](DeviceKind kind) {
    for (const auto& [in, dw, db] : {std::tuple{DType::f32, DType::f32, DType::f32},
                                     {DType::f64, DType::f64, DType::f64},
                                     {DType::bf16, DType::bf16, DType::bf16},
                                     {DType::bf16, DType::bf16, DType::f32},
                                     {DType::bf16, DType::f32, DType::bf16},
                                     {DType::f16, DType::f32, DType::f32},
                                     {DType::f16, DType::f16, DType::f16}})
      for (const bool whole : {false, true}) {
        const int64_t unit = whole ? 8 : 1;
        check(kind, Weight{pick(1, 90), pick(1, 70 / unit) * unit, pick(1, 70 / unit) * unit, in, dw, db,
                           whole ? 0 : pick(0, 3)});
      }
  });
}

TEST(LinearBackward, WeightFromNothingToOdd) {
  const int64_t sizes[][3] = {{0, 3, 4},  {1, 1, 1},   {1, 5, 3},     {3, 1, 5},      {5, 3, 1},
                              {33, 0, 7}, {200, 1, 9}, {129, 65, 34}, {300, 130, 70}, {40, 33, 131}};
  on_both_generations([&](DeviceKind kind) {
    for (const auto& [M, I, O] : sizes)
      for (const DType dtype : {DType::f32, DType::bf16}) check(kind, Weight{M, I, O, dtype, dtype, DType::f32});
  });
}

TEST(LinearBackward, WeightOfASharedOutDepth) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const int64_t o : {24, 21})
      for (const DType dtype : {DType::f32, DType::bf16})
        check(kind, Weight{1300, 20, o, dtype, DType::f32, o == 24 ? dtype : DType::f32});
}

TEST(LinearBackward, WeightOnEveryTileOfMma) {  // the largest need many blocks: several of each row
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices()) {
    if (kind == DeviceKind::cpu) continue;
    check(kind, Weight{40, 1288, 1160});
    check(kind, Weight{40, 264, 256});
    check(kind, Weight{40, 1288, 1160, DType::f32, DType::f32, DType::f32});
    for (const TileSize size : {TileSize::wide, TileSize::flat}) {
      const TileScope scope(size);
      for (const DType dtype : {DType::bf16, DType::f16}) check(kind, Weight{72, 520, 136, dtype, dtype});
    }
  }
}

TEST(LinearBackward, WeightOnEveryTileOfWgmma) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 1}, {large, 2}})
      for (const int splits : {1, 3})
        check(kind, Weight{.M = 650, .I = 296, .O = 200, .db = splits == 1 ? DType::f32 : DType::bf16, .gap = 8},
              {.tile = tile, .splits = splits, .cluster = cluster});
    check(kind, Weight{.M = 70, .I = 136, .O = 136, .in = DType::f16, .dw = DType::f32}, {.tile = medium});
  });
}

TEST(LinearBackward, TheSameBitsInEveryRun) {
  on_both_generations([](DeviceKind kind) {
    const Matrix dy(kind, DType::bf16, 1500, 56), x(kind, DType::bf16, 1500, 64);
    std::vector<double> first;
    in_orders(2, [&] {
      const DeviceArray dw(kind, DType::f32, {56, 64}), db(kind, DType::f32, {56});
      kernels::linear_backward_weight(queue_on(kind), dw, db, dy.view, x.view);
      auto got = dw.host();
      for (const double value : db.host()) got.push_back(value);
      if (first.empty()) first = got;
      EXPECT_EQ(got, first);
    });
  });
}

TEST(LinearBackward, SaysWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const kernels::Queue queue = queue_on(kind);
    const DeviceArray x(kind, DType::f32, {2, 3}), dy(kind, DType::f32, {2, 4}), w(kind, DType::f32, {4, 3}),
        b(kind, DType::f32, {4});
    EXPECT_EQ(error_text([&] { kernels::linear_backward_input(queue, x, dy, x, x, Activation::relu); }),
              "linear_backward_input: expected [M,I] = [M,O] @ [O,I], got f32[2,3] = f32[2,4] @ f32[2,3]");
    EXPECT_EQ(error_text([&] { kernels::linear_backward_input(queue, x, dy, w, dy, Activation::relu); }),
              "linear_backward_input: expected saved laid out as f32[2,3], got f32[2,4]");
    EXPECT_EQ(error_text([&] { kernels::linear_backward_input(queue, x, dy, w, x, Activation::none); }),
              "linear_backward_input: expected an activation. Use matmul without one");
    EXPECT_EQ(error_text([&] { kernels::linear_backward_weight(queue, x, b, dy, x); }),
              "linear_backward_weight: expected [O,I] = [M,O]^T @ [M,I], got f32[2,3] = f32[2,4] @ f32[2,3]");
    const DeviceArray wrong(kind, DType::bf16, {4});
    EXPECT_EQ(error_text([&] { kernels::linear_backward_weight(queue, w, wrong, dy, x); }),
              "linear_backward_weight: expected a dense bias gradient [4] and both gradients in f32, got f32[4,3] and "
              "bf16[4]");
    View across = dy.view();
    across.strides = {1, 2};
    EXPECT_EQ(error_text([&] { kernels::linear_backward_weight(queue, w, b, across, x); }),
              "linear_backward_weight: expected dense rows, got f32[2,4] and f32[2,3] of strides 2 and 1. Make them "
              "contiguous first");
  }
}

}  // namespace
}  // namespace weft::tests
