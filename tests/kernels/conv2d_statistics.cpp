// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/gemm/gemm_plan.h"
#include "kernels/cuda/gemm/wgmma_plan.h"
#include "kernels/runtime/f32_products.h"
#include "kernels/runtime/variants.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/support/compare.h"
#include "tests/support/emulator_seed.h"
#include "tests/support/hopper.h"
#include "tests/support/random_values.h"

namespace weft::tests {
namespace {

using kernels::View;

/// A convolution whose results lie around `center`, and its statistics [2 O + 1].
std::vector<double> check(DeviceKind kind, const Conv2dCase& c, DType dtype, double center) {
  SCOPED_TRACE(str(c, " ", dtype, " around ", center, " on ", name(kind)));
  const kernels::Queue queue = queue_on(kind);
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const DeviceArray x(kind, dtype, c.x_sizes(), uniform(count_of(c.x_sizes()), dtype)),
      w(kind, dtype, c.w_sizes(), uniform(count_of(c.w_sizes()), dtype)),
      bias(kind, dtype, {c.O}, uniform(c.O, dtype, center, center + 1));
  const View offset = center != 0 ? bias.view() : View::none();
  DeviceArray y(kind, dtype, c.y_sizes()), plain(kind, dtype, c.y_sizes()), part(kind, wide, {2 * c.O + 1});
  kernels::conv2d_statistics(queue, y, part, x, w, offset, c.arguments);
  kernels::conv2d_forward(queue, plain, x, w, offset, c.arguments);
  const std::vector<double> stored = y.host(), got = part.host();
  EXPECT_EQ(stored, plain.host()) << "the result itself";

  const size_t O = static_cast<size_t>(c.O), rows = stored.size() / O;
  std::vector<double> mean(O), m2(O);
  for (size_t i = 0; i < stored.size(); ++i) mean[i % O] += stored[i] / static_cast<double>(rows);
  for (size_t i = 0; i < stored.size(); ++i) {
    const double distance = stored[i] - mean[i % O];
    m2[i % O] += distance * distance;
  }
  const Tolerance allowed = tolerance(wide, static_cast<int64_t>(rows)).times(4);
  const auto at = [&](size_t first) {
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>(first);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(O));
  };
  EXPECT_TRUE(near(at(0), mean, allowed)) << "mean";
  EXPECT_TRUE(near(at(O), m2, allowed)) << "squared distances";
  EXPECT_EQ(got.back(), static_cast<double>(rows));
  return got;
}

/// More positions than a tile has, in each of the tiles of an A100 (32, 64 and 128 rows), the last tile incomplete;
/// groups and 1x1 filters; channels that fill no tile.
const Conv2dCase kTiles[] = {{2, 9, 7, 8, 32, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}},
                             {1, 33, 32, 4, 70, 2, 1, {}},
                             {3, 64, 65, 1, 68, 1, 2, {}},
                             {2, 13, 11, 8, 18, 3, 3, {{2, 2}, {1, 1}, {1, 1}, 2}},
                             {2, 19, 17, 16, 24, 1, 1, {}},
                             {1, 11, 10, 6, 6, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 6}},
                             {1, 5, 5, 1100, 24, 1, 1, {}}};

TEST(Conv2dStatistics, EqualReference) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      for (const Conv2dCase& c : kConv2dCases)
        if (count_of(c.y_sizes()) > 0) check(kind, c, dtype, 2);
      for (const Conv2dCase& c : kTiles) check(kind, c, dtype, 0.5);
      for (const auto size : {kernels::TileSize::wide, kernels::TileSize::tall}) {
        const kernels::TileScope scope(size);
        check(kind, {4, 10, 9, 16, 280, 1, 1, {}}, dtype, 0.5);
        check(kind, {2, 9, 17, 3, 40, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}, dtype, 0.5);
      }
    }
}

// A plain sum of squares would lose what is asked for: 100^2 against 1.
TEST(Conv2dStatistics, KeepSmallDeviationsFarFromZero) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const Conv2dCase& c : kTiles) check(kind, c, DType::f32, 100);
}

TEST(Conv2dStatistics, OnHopper) {
  on_wgmma([&](DeviceKind kind) {
    int turn = 0;
    const auto run = [&](const Conv2dCase& c, int splits) {
      const kernels::WgmmaPlanScope scope(hopper_plan(turn, splits));
      const DType dtype = std::array{DType::bf16, DType::f16, DType::f32, DType::f16}[turn / 2 % 4];
      const kernels::F32ProductsScope tf32_scope(kernels::tf32_if(dtype == DType::f32));
      check(kind, c, dtype, turn % 4 == 1 ? 100 : 0.5);
      ++turn;
      EXPECT_EQ(scope.uses(), dtype == DType::f32 && c.C % 4 != 0 ? 0 : 2) << c << ' ' << dtype;
    };
    for (const Conv2dCase& c : kHopperCases)
      for (const int splits : {1, 3}) run(c, splits);
    // Several tiles for each block, chunks of which a warpgroup has all, some or no rows; and 1x1 filters.
    for (int repeat = 0; repeat < 6; ++repeat) {
      run({3, 17, 13, 8, 72, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}, 1);
      run({2, 12, 11, 16, 264, 1, 1, {}}, 1);
    }
  });
}

// Tensor cores sum in another order than the loop does; columns that cancel, infinities and NaN leave no other way than
// the loop.
TEST(Conv2dStatistics, ByTensorCoresAndByTheLoop) {
  on_wgmma([](DeviceKind kind) {
    for (const Conv2dCase& c :
         {Conv2dCase{2, 16, 16, 64, 72, 1, 1, {}}, Conv2dCase{2, 16, 16, 8, 72, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}}})
      for (const DType dtype : {DType::bf16, DType::f16}) {
        SCOPED_TRACE(str(c, " ", dtype));
        const std::vector<double> pixels = uniform(count_of(c.x_sizes()), dtype);
        const DeviceArray w(kind, dtype, c.w_sizes(), uniform(count_of(c.w_sizes()), dtype));
        const auto part_of = [&](const std::vector<double>& of, double center, const char* variant) {
          const std::vector<double> offsets(static_cast<size_t>(c.O), center);
          const DeviceArray x(kind, dtype, c.x_sizes(), of), bias(kind, dtype, {c.O}, offsets);
          DeviceArray y(kind, dtype, c.y_sizes()), part(kind, DType::f32, {2 * c.O + 1});
          kernels::choose_variants(variant);
          kernels::conv2d_statistics(queue_on(kind), y, part, x, w, bias, c.arguments);
          kernels::choose_variants("");
          return part.host();
        };
        const std::vector<double> by_mma = part_of(pixels, 1, ""), by_loop = part_of(pixels, 1, "looped_moments");
        EXPECT_NE(by_mma, by_loop);
        EXPECT_TRUE(near(by_mma, by_loop, tolerance(DType::f32, 512).times(4)));
        EXPECT_EQ(part_of(pixels, 200, ""), part_of(pixels, 200, "looped_moments")) << "all columns cancel";
        std::vector<double> broken = pixels;
        broken[broken.size() / 2] = std::numeric_limits<double>::infinity();
        for (const char* const variant : {"", "looped_moments"}) {
          const std::vector<double> got = part_of(broken, 1, variant);
          for (size_t i = 0; i + 1 < got.size(); ++i) EXPECT_FALSE(std::isfinite(got[i])) << i << ' ' << variant;
        }
      }
  });
}

TEST(Conv2dStatistics, TheSameBitsInEveryOrder) {
  on_both_generations([](DeviceKind kind) {
    const Conv2dCase c{2, 19, 17, 8, 40, 3, 3, {{1, 1}, {1, 1}, {1, 1}, 1}};
    const DeviceArray x(kind, DType::bf16, c.x_sizes(), uniform(count_of(c.x_sizes()), DType::bf16)),
        w(kind, DType::bf16, c.w_sizes(), uniform(count_of(c.w_sizes()), DType::bf16));
    std::vector<double> first;
    in_orders(2, [&] {
      DeviceArray y(kind, DType::bf16, c.y_sizes()), part(kind, DType::f32, {2 * c.O + 1});
      kernels::conv2d_statistics(queue_on(kind), y, part, x, w, View::none(), c.arguments);
      if (first.empty()) first = part.host();
      EXPECT_EQ(part.host(), first) << name(kind);
    });
  });
}

TEST(Conv2dStatistics, SayWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {1, 4, 4, 2}), w(kind, DType::f32, {3, 1, 1, 2}),
        y(kind, DType::f32, {1, 4, 4, 3}), part(kind, DType::f32, {6});
    EXPECT_THAT(
        error_text([&] { kernels::conv2d_statistics(queue_on(kind), y, part, x, w, View::none(), {}); }),
        testing::HasSubstr("conv2d_statistics: expected positions and a part f32[7], got f32[1,4,4,3] and f32[6]"));
  }
}

}  // namespace
}  // namespace weft::tests
