// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/conv2d.h"

#include <gmock/gmock.h>

#include "kernels/cuda/gemm/gemm_plan.h"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::TileSize;
using kernels::View;

using Case = Conv2dCase;

void check(DeviceKind kind, const Case& c, DType dtype) {
  SCOPED_TRACE(str(c, " ", dtype, " on ", name(kind)));
  const kernels::Queue queue = queue_on(kind);
  const Sizes xs{c.N, c.H, c.W, c.C}, ws{c.O, c.R, c.S, c.group_in()}, ys{c.N, c.P(), c.Q(), c.O};
  const auto x = uniform(count_of(xs), dtype), w = uniform(count_of(ws), dtype), dy = uniform(count_of(ys), dtype);
  const auto bias = uniform(c.O, dtype, 2, 3);  // away from 0: one product and its bias must not cancel
  const DeviceArray x_array(kind, dtype, xs, x), w_array(kind, dtype, ws, w), dy_array(kind, dtype, ys, dy);
  const DeviceArray bias_array(kind, dtype, {c.O}, bias);

  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), dw_sizes(w.size());
  c.for_each_product([&](int64_t i, int64_t j, int64_t k) {
    y[k] += x[i] * w[j];
    dx[i] += dy[k] * w[j];
    dw[j] += dy[k] * x[i];
    dw_sizes[j] += dy[k] * x[i] * dy[k] * x[i];
  });
  // A filter may be one weight, whose terms may cancel and leave roundings of their own size.
  for (size_t j = 0; j < dw.size(); ++j) dw_sizes[j] = std::max(std::abs(dw[j]), std::sqrt(dw_sizes[j]));
  const int64_t filter = c.R * c.S * c.group_in();
  DeviceArray result(kind, dtype, ys);
  kernels::conv2d_forward(queue, result, x_array, w_array, View::none(), c.arguments);
  EXPECT_TRUE(near(result.host(), y, tolerance(dtype, filter))) << "forward";

  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % static_cast<size_t>(c.O)];
  result.poison();
  kernels::conv2d_forward(queue, result, x_array, w_array, bias_array, c.arguments);
  EXPECT_TRUE(near(result.host(), y, tolerance(dtype, filter))) << "forward with bias";

  DeviceArray dx_array(kind, dtype, xs);
  kernels::conv2d_backward_input(queue, dx_array, dy_array, w_array, View::none(), c.arguments);
  EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, c.R * c.S * c.O))) << "backward_input";

  const auto dx_in = uniform(count_of(xs), dtype, 2, 3);
  const DeviceArray dx_in_array(kind, dtype, xs, dx_in);
  for (size_t i = 0; i < dx.size(); ++i) dx[i] += dx_in[i];
  dx_array.poison();
  kernels::conv2d_backward_input(queue, dx_array, dy_array, w_array, dx_in_array, c.arguments);
  EXPECT_TRUE(near(dx_array.host(), dx, tolerance(dtype, c.R * c.S * c.O))) << "backward_input and dx_in";

  const int64_t uses = c.N * c.P() * c.Q();
  DeviceArray dw_array(kind, dtype, ws);
  kernels::conv2d_backward_weight(queue, dw_array, dy_array, x_array, c.arguments);
  EXPECT_TRUE(near(dw_array.host(), dw, tolerance(dtype, uses), dw_sizes)) << "backward_weight";
  if (dtype == DType::bf16 || dtype == DType::f16) {
    DeviceArray wide(kind, DType::f32, ws);
    kernels::conv2d_backward_weight(queue, wide, dy_array, x_array, c.arguments);
    EXPECT_TRUE(near(wide.host(), dw, tolerance(DType::f32, uses), dw_sizes)) << "backward_weight into f32";
  }
}

TEST(Conv2d, EqualsReferenceInAllDirections) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Case& c : kConv2dCases) check(kind, c, dtype);
}

/// Tiles of 64 and of 128 rows and columns in each direction (other cases have 32). Loads have 16 bytes or single
/// elements.
TEST(Conv2d, LargerTiles) {
  const Conv2dArguments same{{1, 1}, {1, 1}, {1, 1}, 1}, groups{{1, 1}, {0, 1}, {1, 1}, 12};
  for (const DeviceKind kind : test_devices()) {
    check(kind, {1, 33, 32, 64, 64, 3, 3, same}, DType::f32);             // 64: all directions, 17 tiles
    check(kind, {1, 32, 31, 35, 37, 3, 3, same}, DType::f32);             //     16 tiles
    check(kind, {1, 30, 30, 12 * 4, 12 * 68, 1, 3, groups}, DType::f32);  // 128: forward, 8 tiles in each group
    check(kind, {1, 30, 30, 12 * 3, 12 * 67, 1, 3, groups}, DType::f32);
    check(kind, {1, 30, 30, 12 * 68, 12 * 4, 1, 3, groups}, DType::f32);  // 128: backward_input
    check(kind, {1, 30, 30, 12 * 67, 12 * 3, 1, 3, groups}, DType::f32);
    check(kind, {1, 9, 10, 8, 68, 3, 3, same}, DType::f32);  // 128: backward_weight, 68 by 72
    check(kind, {1, 9, 10, 9, 67, 3, 3, same}, DType::f32);
    // A whole GPU of blocks, as a network has them.
    if (kind == DeviceKind::cuda) check(kind, {8, 56, 56, 64, 64, 3, 3, same}, DType::f32);
  }
}

/// The tiles of tensor cores in 16 bits: more channels than a step has, fewer than four of its runs, and single
/// elements.
TEST(Conv2d, LargerTilesOfMma) {
  const kernels::CapabilityScope ampere(80);
  const Conv2dArguments same{{1, 1}, {1, 1}, {1, 1}, 1}, strided{{2, 1}, {1, 2}, {1, 2}, 2};
  for (const DeviceKind kind : test_devices())
    for (const TileSize size : {TileSize::medium, TileSize::large, TileSize::wide, TileSize::tall, TileSize::flat}) {
      SCOPED_TRACE(static_cast<int>(size));
      const kernels::TileScope scope(size);
      check(kind, {2, 9, 8, 40, 264, 3, 3, same}, DType::bf16);
      check(kind, {3, 9, 7, 16, 48, 3, 2, strided}, DType::f16);
      check(kind, {1, 13, 11, 9, 9, 2, 3, same}, DType::bf16);
    }
}

/// A step of a tile's threads, 8 or 16 positions or filters, may cover several rows of an image, several images, and
/// several taps.
TEST(Conv2d, ManyRowsAndTapsAtATime) {
  const kernels::CapabilityScope ampere(80);
  const Conv2dArguments same{{1, 1}, {1, 1}, {1, 1}, 1}, strided{{2, 3}, {1, 1}, {1, 1}, 1},
      groups{{1, 2}, {1, 1}, {2, 1}, 2};
  for (const DeviceKind kind : test_devices())
    for (const TileSize size : {TileSize::small, TileSize::medium, TileSize::large}) {
      SCOPED_TRACE(static_cast<int>(size));
      const kernels::TileScope scope(size);
      check(kind, {75, 1, 1, 8, 16, 3, 3, same}, DType::bf16);
      check(kind, {21, 3, 2, 16, 8, 3, 2, same}, DType::bf16);
      check(kind, {9, 4, 7, 8, 8, 3, 3, strided}, DType::f16);
      check(kind, {5, 7, 5, 16, 16, 3, 3, groups}, DType::bf16);
    }
}

/// Images of fewer than eight channels are packed first: 4 or 8 channels to a pixel, windows of 8 to 48 channels.
TEST(Conv2d, StemsOnAmpere) {
  const kernels::CapabilityScope ampere(80);
  const Conv2dArguments resnet{{2, 2}, {3, 3}, {1, 1}, 1}, same{{1, 1}, {1, 1}, {1, 1}, 1},
      apart{{3, 3}, {0, 2}, {2, 1}, 1}, far{{1, 4}, {2, 0}, {1, 1}, 1};
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::bf16, DType::f16}) {
      check(kind, {3, 19, 22, 3, 24, 7, 7, resnet}, dtype);
      check(kind, {2, 9, 11, 3, 17, 3, 3, same}, dtype);
      check(kind, {2, 13, 10, 7, 16, 4, 5, apart}, dtype);
      check(kind, {2, 6, 21, 1, 8, 5, 2, far}, dtype);
    }
}

TEST(Conv2d, RandomShapes) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (int repeat = 0; repeat < 12; ++repeat) {
      const int64_t groups = pick(1, 3), dilation = pick(1, 2), kernel = pick(1, 4);
      const Case c{
          pick(1, 3),          pick(8, 14),
          pick(8, 14),         groups * pick(1, 9),
          groups * pick(1, 9), kernel,
          pick(1, 4),          {{pick(1, 3), pick(1, 3)}, {pick(0, 2), pick(0, 2)}, {dilation, dilation}, groups}};
      check(kind, c, repeat % 2 ? DType::f32 : DType::bf16);
    }
}

// Enough outputs that Winograd's algorithm computes them, with edges that no tile of 4x4 fits.
TEST(Conv2d, ManyTilesOnTheCpu) {
  for (const Case& c : {Case{6, 15, 18, 16, 24, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},
                        Case{9, 16, 13, 32, 16, 3, 3, {{1, 1}, {0, 0}, {1, 1}, 1}}})
    check(DeviceKind::cpu, c, DType::f32);
}

TEST(Conv2d, OnHopper) {
  on_wgmma([&](DeviceKind kind) {
    int turn = 0;
    for (const Case& c : kHopperCases)
      for (const int splits : {1, 3}) {
        const kernels::WgmmaPlanScope scope(hopper_plan(turn, splits));
        check(kind, c, turn++ % 2 ? DType::f16 : DType::bf16);
        const bool phases = c.C % 8 == 0 && c.arguments.stride.h * c.arguments.stride.w <= 4;
        EXPECT_EQ(scope.uses(), phases ? 6 : 4) << c;
      }
  });
}

/// Tiles of 256 rows: two whole ones, and one in which the second warpgroup has rows in its first band alone.
TEST(Conv2d, TallTilesOnHopper) {
  using enum kernels::WgmmaPlan::Tile;
  on_wgmma([&](DeviceKind kind) {
    for (const DType dtype : {DType::bf16, DType::f16}) {
      const kernels::WgmmaPlanScope scope({.tile = tall, .splits = 1, .cluster = 1});
      check(kind, {3, 17, 13, 72, 136, 1, 3, {{1, 1}, {0, 1}, {1, 1}, 1}}, dtype);
      EXPECT_EQ(scope.uses(), 6);
    }
  });
}

/// The input's gradient of a strided convolution in ping-pong tiles: several for each block, phases of one, two and
/// four taps, and of none, whose zeros other warps store.
TEST(Conv2d, PhasesInTurnsOnHopper) {
  using enum kernels::WgmmaPlan::Tile;
  on_wgmma([&](DeviceKind kind) {
    for (const int cluster : {1, 2}) {
      const kernels::WgmmaPlanScope scope({.tile = ping_pong, .splits = 1, .cluster = cluster});
      check(kind, {2, 33, 30, 72, 24, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 1}}, DType::bf16);
      check(kind, {3, 33, 31, 128, 72, 1, 1, {{2, 2}, {0, 0}, {1, 1}, 1}}, DType::f16);
      check(kind, {2, 20, 17, 8, 40, 2, 1, {{1, 4}, {1, 0}, {1, 1}, 1}}, DType::bf16);
    }
  });
}

/// The weight's gradient in columns of all taps: chunks at the taps of a row and of two, tiles that end within a tap
/// and after the last; a row of tiles and two. All tiles, the positions whole and in three shares.
TEST(Conv2d, ColumnsOfAllTapsOnHopper) {
  using enum kernels::WgmmaPlan::Tile;
  on_wgmma([&](DeviceKind kind) {
    for (const auto tile : {wide, small, medium, large})
      for (const int splits : {1, 3}) {
        const kernels::WgmmaPlanScope scope({.tile = tile, .splits = splits, .cluster = 1});
        check(kind, {2, 9, 8, 64, 72, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}, DType::bf16);
        check(kind, {2, 13, 12, 128, 24, 2, 3, {{2, 2}, {2, 1}, {3, 2}, 1}}, DType::f16);
        check(kind, {1, 8, 8, 64, 8, 3, 1, {{1, 1}, {127, 0}, {127, 1}, 1}}, DType::bf16);  // a fourth tap: no offset
        EXPECT_EQ(scope.uses(), 18);
      }
  });
}

/// 64 filters want tiles with many rows: one of 128 x 128 is empty in half of its columns.
TEST(Conv2d, FewFiltersTakeTallTiles) {
  using enum kernels::WgmmaPlan::Tile;
  const auto plan = [](int64_t pixels, int64_t filters, int64_t steps, bool may_be_tall) {
    return kernels::wgmma_plan(pixels, filters, steps, 1, {.split = true, .be_tall = may_be_tall});
  };
  EXPECT_EQ(plan(256 * 56 * 56, 64, 9, true).tile, tall);  // ResNet-50, batch 256
  EXPECT_EQ(plan(256 * 112 * 112, 64, 7, true).tile, tall);
  EXPECT_NE(plan(256 * 56 * 56, 64, 9, false).tile, tall);
  EXPECT_EQ(plan(256 * 28 * 28, 128, 18, true).tile, medium);
  EXPECT_EQ(plan(256 * 14 * 14, 256, 36, true).tile, large);
}

/// The gradient of few filters wants tiles with many columns.
TEST(Conv2d, GradientsOfFewFiltersTakeWideTiles) {
  using enum kernels::WgmmaPlan::Tile;
  const auto plan = [](int64_t filters, int64_t channels, int64_t taps, int64_t pixels) {
    return kernels::wgmma_plan(filters, taps * channels, pixels / 64, 1, {.split = true, .be_wide = true});
  };
  EXPECT_EQ(plan(64, 64, 9, 256 * 56 * 56).tile, wide);  // ResNet-50, batch 256
  EXPECT_EQ(plan(64, 64, 1, 256 * 56 * 56).tile, small);
  EXPECT_EQ(plan(128, 64, 9, 256 * 28 * 28).tile, medium);
  EXPECT_EQ(plan(128, 128, 9, 256 * 28 * 28).tile, medium);
  EXPECT_EQ(plan(256, 256, 9, 256 * 14 * 14).tile, large);
}

TEST(Conv2d, SaysWhatDoesNotFit) {
  const DeviceArray x(DeviceKind::cpu, DType::f32, {1, 8, 8, 4}), w(DeviceKind::cpu, DType::f32, {2, 3, 3, 3});
  const DeviceArray y(DeviceKind::cpu, DType::f32, {1, 6, 6, 2});
  EXPECT_THAT(error_text([&] { kernels::conv2d_forward(queue_on(DeviceKind::cpu), y, x, w, View::none(), {}); }),
              testing::HasSubstr("got x f32[1,8,8,4], w f32[2,3,3,3]"));
}

}  // namespace
}  // namespace weft::tests
