// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/conv2d.h"
#include "kernels/runtime/kernel_variant.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/kernels/matmul_wgmma_case.h"

// f32 as tf32 on TMA and wgmma: products whose factors both lie along the depth, and convolutions forward. Every third
// factor is half way between two numbers of tf32, where TMA's rounding differs from mma.sync's.

namespace weft::tests {
namespace {

using kernels::Activation;
using kernels::Grad;
using kernels::F32Products;
using kernels::F32ProductsScope;
using kernels::View;
using kernels::WgmmaPlanScope;
using enum kernels::WgmmaPlan::Tile;

/// f32 [B,M,K] @ [B,K,N], both along k.
WgmmaCase along_k(int64_t B, int64_t M, int64_t N, int64_t K) {
  return {.B = B, .M = M, .N = N, .K = K, .in = DType::f32, .out = DType::f32, .transpose_b = true};
}

TEST(Tf32Wgmma, EveryTile) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 1}, {medium, 2}, {large, 1}, {large, 2}})
      for (const bool bias : {false, true}) {
        WgmmaCase c = along_k(1, pick(1, 300), pick(1, 300), pick(1, 100));
        c.bias = bias;
        check_wgmma(kind, c, {.tile = tile, .cluster = cluster});
      }
  });
}

TEST(Tf32Wgmma, MoreStepsThanStages) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [tile, cluster] : {std::pair{small, 1}, {medium, 2}, {large, 2}})
      check_wgmma(kind, along_k(1, 130, 72, 32 * 9 + 5), {.tile = tile, .cluster = cluster});
  });
}

TEST(Tf32Wgmma, EveryEpilogue) {
  on_wgmma([](DeviceKind kind) {
    for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh})
      for (const int64_t n : {72, 70, 69}) {  // lines for TMA, for pairs, and for neither
        WgmmaCase c = along_k(2, 65, n, 40);
        c.bias = true;
        c.activation = activation;
        c.pre = n != 70;
        c.residual = n != 72 || activation == Activation::none;
        check_wgmma(kind, c, {.tile = activation == Activation::relu ? small : medium});
      }
    WgmmaCase c = along_k(1, 90, 200, 44);
    c.grad = Grad::accumulate;
    check_wgmma(kind, c, {.tile = large});
  });
}

TEST(Tf32Wgmma, BatchesAndBroadcasts) {
  on_wgmma([](DeviceKind kind) {
    for (const bool a : {false, true})
      for (const bool b : {false, true}) {
        WgmmaCase c = along_k(3, 70, 136, 28);
        c.broadcast_a = a;
        c.broadcast_b = b;
        check_wgmma(kind, c, {.tile = a ? small : medium, .cluster = 2});
      }
  });
}

TEST(Tf32Wgmma, SharedOutDepth) {
  on_wgmma([](DeviceKind kind) {
    for (const auto& [n, splits] : {std::pair{72, 3}, {69, 5}}) {
      WgmmaCase c = along_k(1, 100, n, 330);
      c.bias = c.pre = c.residual = true;
      c.activation = Activation::gelu;
      check_wgmma(kind, c, {.tile = n == 72 ? small : medium, .splits = splits});
    }
  });
}

TEST(Tf32Wgmma, TheSizesChooseTheTile) {
  on_wgmma([](DeviceKind kind) {
    kernels::note_kernel_variant("");
    check_wgmma(kind, along_k(1, 150, 130, 72));
    EXPECT_STREQ(kernels::noted_kernel_variant(), "sm90");
  });
}

TEST(Tf32Wgmma, OtherLayoutsAndOddLinesTakeTheOtherKernel) {
  on_wgmma([](DeviceKind kind) {
    const auto uses = [&](const View& a, const View& b, bool allowed) {
      const F32ProductsScope tf32_scope(kernels::tf32_if(allowed));
      const WgmmaPlanScope scope({});
      DeviceArray y(kind, DType::f32, {1, a.sizes[1], b.sizes[2]});
      kernels::matmul(queue_on(kind), y, a, b, View::none(), {});
      return scope.uses();
    };
    const auto factor = [&](int64_t rows, int64_t columns, bool transposed) {
      return WgmmaFactor(kind, DType::f32, 1, rows, columns, transposed);
    };
    const WgmmaFactor a = factor(20, 24, false), b = factor(24, 28, true);
    EXPECT_EQ(uses(a.view, b.view, true), 1);
    EXPECT_EQ(uses(a.view, b.view, false), 0) << "f32 is f32";
    EXPECT_EQ(uses(factor(20, 24, true).view, b.view, true), 0) << "a along its rows";
    EXPECT_EQ(uses(a.view, factor(24, 28, false).view, true), 0) << "b along its columns";
    const DeviceArray odd_a(kind, DType::f32, {1, 20, 26}), odd_b(kind, DType::f32, {1, 28, 26});
    View narrow_a = odd_a, narrow_b = odd_b;  // lines of 26 elements, 104 bytes
    narrow_a.sizes = {1, 20, 24};
    narrow_b.sizes = {1, 24, 28};
    narrow_b.strides = {26 * 28, 1, 26};
    EXPECT_EQ(uses(narrow_a, b.view, true), 0) << "a's lines";
    EXPECT_EQ(uses(a.view, narrow_b, true), 0) << "b's lines";
  });
}

TEST(Tf32Wgmma, TiesGoToEvenAndNanStays) {
  on_wgmma([](DeviceKind kind) {
    const F32ProductsScope allowed(F32Products::tf32);
    const WgmmaPlanScope scope({});
    const std::vector<double> values{1 + 0x1p-11, -1 - 0x3p-11, 1 + 0x1p-11 + 0x1p-23, 3 - 0x1p-22, NAN, INFINITY,
                                     0,           0x1p-126};
    std::vector<double> a(4 * values.size());
    for (size_t i = 0; i < values.size(); ++i) a[4 * i] = values[i];
    const DeviceArray a_array(kind, DType::f32, {1, 8, 4}, a),
        b_array(kind, DType::f32, {1, 2, 4}, {1, 0, 0, 0, 1, 0, 0, 0});
    View b = b_array;
    b.sizes = {1, 4, 2};
    b.strides = {8, 1, 4};
    DeviceArray y(kind, DType::f32, {1, 8, 2});
    kernels::matmul(queue_on(kind), y, a_array, b, View::none(), {});
    EXPECT_EQ(scope.uses(), 1);
    std::vector<double> want;
    for (const double value : {1.0, -1 - 0x1p-9, 1 + 0x1p-10, 3.0, double{NAN}, double{INFINITY}, 0.0, 0x1p-126})
      want.insert(want.end(), 2, value);
    EXPECT_TRUE(near(y.host(), want, {}));
  });
}

/// Forward, cut as `plan` says, into tiles of wgmma where channels are multiples of 16 bytes.
void check_forward(DeviceKind kind, const Conv2dCase& c, const kernels::WgmmaPlan& plan, bool has_bias) {
  SCOPED_TRACE(str(c, " bias ", has_bias, " tile ", static_cast<int>(plan.tile), ", ", plan.splits, " shares, cluster ",
                   plan.cluster, " on ", name(kind)));
  const F32ProductsScope allowed(F32Products::tf32);
  const WgmmaPlanScope scope(plan);
  const auto x = tf32::with_ties(count_of(c.x_sizes())), w = tf32::with_ties(count_of(c.w_sizes())),
             bias = uniform(c.O, DType::f32, 2, 3);
  const DeviceArray x_array(kind, DType::f32, c.x_sizes(), x), w_array(kind, DType::f32, c.w_sizes(), w),
      bias_array(kind, DType::f32, {c.O}, bias), y(kind, DType::f32, c.y_sizes());
  kernels::conv2d_forward(queue_on(kind), y, x_array, w_array, has_bias ? bias_array.view() : View::none(),
                          c.arguments);
  const bool on_wgmma = c.C % 4 == 0;
  EXPECT_EQ(scope.uses(), on_wgmma ? 1 : 0);
  const auto seen = [&](double value) { return on_wgmma ? tf32::even(value) : tf32::away(value); };
  std::vector<double> want(static_cast<size_t>(count_of(c.y_sizes())));
  c.for_each_product([&](int64_t i, int64_t j, int64_t k) { want[k] += seen(x[i]) * seen(w[j]); });
  for (size_t i = 0; i < want.size(); ++i) want[i] += has_bias ? bias[i % static_cast<size_t>(c.O)] : 0;
  EXPECT_TRUE(near(y.host(), want, tolerance(DType::f32, c.R * c.S * c.C)));
}

TEST(Tf32Wgmma, Conv2dForward) {
  on_wgmma([](DeviceKind kind) {
    int turn = 0;
    const auto run = [&](const Conv2dCase& c, int splits) {
      check_forward(kind, c, hopper_plan(turn, splits), turn % 2 == 0);
      ++turn;
    };
    for (const Conv2dCase& c : kHopperCases)
      for (const int splits : {1, 3}) run(c, splits);
    run({2, 9, 7, 36, 20, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}, 1);  // channels in multiples of 16 bytes, not of 32
    run({2, 9, 8, 44, 136, 1, 1, {}}, 1);                          // a product
  });
}

TEST(Tf32Wgmma, ConvolutionsAreF32WhereNothingElseIsAllowed) {
  on_wgmma([](DeviceKind kind) {
    const F32ProductsScope tf32_scope(F32Products::exact);
    const WgmmaPlanScope scope({});
    const DeviceArray x(kind, DType::f32, {1, 5, 5, 8}), w(kind, DType::f32, {4, 3, 3, 8}),
        y(kind, DType::f32, {1, 3, 3, 4});
    kernels::conv2d_forward(queue_on(kind), y, x, w, View::none(), {});
    EXPECT_EQ(scope.uses(), 0);
  });
}

}  // namespace
}  // namespace weft::tests
