// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "kernels/cuda/gemm/wgmma_plan.h"
#include "kernels/runtime/f32_products.h"
#include "tests/kernels/conv2d_case.h"
#include "tests/support/compare.h"
#include "tests/support/hopper.h"
#include "tests/support/tf32.h"

namespace weft::tests {
namespace {

using kernels::View;

/// Which of the optional arguments are given.
struct Given {
  bool bias, weight, norm_bias, residual, relu;
};

constexpr Given kGiven[] = {{false, true, true, true, true},
                            {true, true, true, false, true},
                            {true, false, true, true, false},
                            {false, true, false, false, false},
                            {true, false, false, true, true}};

void check(DeviceKind kind, const Conv2dCase& c, DType dtype, const Given& given) {
  SCOPED_TRACE(str(c, " ", dtype, " bias ", given.bias, " weight ", given.weight, " norm_bias ", given.norm_bias,
                   " residual ", given.residual, " relu ", given.relu, " on ", name(kind)));
  const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
  const double eps = 0.25;
  const auto factor = [&](const Sizes& sizes) {
    return dtype == DType::f32 && kernels::allow_tf32() ? tf32::exact(count_of(sizes))
                                                        : uniform(count_of(sizes), dtype);
  };
  const auto x = factor(c.x_sizes()), w = factor(c.w_sizes());
  const auto residual = uniform(count_of(c.y_sizes()), dtype), bias = uniform(c.O, dtype, -2, 2);
  const auto mean = uniform(c.O, wide), var = uniform(c.O, wide, 0.2, 2), weight = uniform(c.O, wide, -2, 2),
             norm_bias = uniform(c.O, wide, -2, 2);
  const DeviceArray x_array(kind, dtype, c.x_sizes(), x), w_array(kind, dtype, c.w_sizes(), w),
      residual_array(kind, dtype, c.y_sizes(), residual), bias_array(kind, dtype, {c.O}, bias),
      mean_array(kind, wide, {c.O}, mean), var_array(kind, wide, {c.O}, var), weight_array(kind, wide, {c.O}, weight),
      norm_bias_array(kind, wide, {c.O}, norm_bias);
  DeviceArray y(kind, dtype, c.y_sizes());
  const auto optional = [](bool is_given, const DeviceArray& array) { return is_given ? array.view() : View::none(); };
  kernels::conv2d_norm(queue_on(kind), y, x_array, w_array, optional(given.bias, bias_array), mean_array, var_array,
                       optional(given.weight, weight_array), optional(given.norm_bias, norm_bias_array),
                       optional(given.residual, residual_array), {c.arguments, eps, given.relu});

  std::vector<double> want(residual.size()), sizes(residual.size());
  c.for_each_product([&](int64_t i, int64_t j, int64_t k) { want[k] += x[i] * w[j]; });
  for (size_t i = 0; i < want.size(); ++i) {
    const size_t o = i % static_cast<size_t>(c.O);
    const double product = want[i], first = given.bias ? bias[o] : 0, last = given.norm_bias ? norm_bias[o] : 0;
    const double scale = (given.weight ? weight[o] : 1) / std::sqrt(var[o] + eps);
    const double centre = mean[o] * scale, added = given.residual ? residual[i] : 0;
    const double value = (product + first) * scale + last - centre + added;
    want[i] = given.relu && value < 0 ? 0 : value;
    // The magnitude of addends, so that terms that happen to cancel allow no fewer roundings than others.
    sizes[i] =
        (std::abs(product) + std::abs(first)) * std::abs(scale) + std::abs(last) + std::abs(centre) + std::abs(added);
  }
  EXPECT_TRUE(near(y.host(), want, tolerance(dtype, c.R * c.S * c.group_in()), sizes));
}

TEST(Conv2dNorm, EqualsReference) {
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices()) {
    int turn = 0;
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16})
      for (const Conv2dCase& c : kConv2dCases) check(kind, c, dtype, kGiven[turn++ % 5]);
  }
}

TEST(Conv2dNorm, SharedOutDepth) {  // a 1x1 filter over many channels: the norm comes after the sum of the slices
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const int64_t o : {24, 21})
      for (const DType dtype : {DType::f32, DType::bf16}) check(kind, {1, 5, 5, 1100, o, 1, 1, {}}, dtype, kGiven[0]);
}

TEST(Conv2dNorm, EveryTile) {  // tiles of an A100: 64 rows and columns, 128
  const kernels::CapabilityScope ampere(80);
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check(kind, {1, 33, 32, 4, 70, 2, 1, {}}, dtype, kGiven[0]);
      check(kind, {3, 64, 65, 1, 68, 1, 2, {}}, dtype, kGiven[0]);
    }
}

TEST(Conv2dNorm, OnHopper) {
  using enum kernels::WgmmaPlan::Tile;
  on_wgmma([&](DeviceKind kind) {
    int turn = 0;
    for (const Conv2dCase& c : kHopperCases)
      for (const int splits : {1, 3}) {
        const kernels::WgmmaPlanScope scope(hopper_plan(turn, splits));
        const DType dtype = std::array{DType::bf16, DType::f16, DType::f32, DType::f16}[turn / 2 % 4];
        const kernels::F32ProductsScope tf32_scope(kernels::tf32_if(dtype == DType::f32));
        check(kind, c, dtype, kGiven[turn % 5]);
        ++turn;
        EXPECT_EQ(scope.uses(), dtype == DType::f32 && c.C % 4 != 0 ? 0 : 1) << c << ' ' << dtype;
      }
    // A 1x1 filter is a product.
    for (const DType dtype : {DType::bf16, DType::f32})
      for (const auto tile : {small, medium, large}) {
        const kernels::WgmmaPlanScope scope({.tile = tile, .splits = 1, .cluster = 1});
        const kernels::F32ProductsScope tf32_scope(kernels::tf32_if(dtype == DType::f32));
        check(kind, {2, 9, 8, 72, 136, 1, 1, {}}, dtype, kGiven[turn++ % 5]);
        EXPECT_EQ(scope.uses(), 1);
      }
  });
}

TEST(Conv2dNorm, NaNPassesTheReLU) {
  for (const DeviceKind kind : test_devices())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::vector<double> ones(8, 1);
      const DeviceArray x(kind, dtype, {1, 1, 1, 8}, std::vector<double>(8, std::nan(""))),
          w(kind, dtype, {1, 1, 1, 8}, ones), one(kind, DType::f32, {1}, {1});
      DeviceArray y(kind, dtype, {1, 1, 1, 1});
      kernels::conv2d_norm(queue_on(kind), y, x, w, View::none(), one, one, View::none(), View::none(), View::none(),
                           {.conv = {}, .relu = true});
      EXPECT_TRUE(std::isnan(y.host()[0])) << dtype << " on " << name(kind);
    }
}

TEST(Conv2dNorm, SaysWhatDoesNotFit) {
  for (const DeviceKind kind : test_devices()) {
    const DeviceArray x(kind, DType::f32, {1, 4, 4, 2}), w(kind, DType::f32, {3, 1, 1, 2}),
        y(kind, DType::f32, {1, 4, 4, 3}), three(kind, DType::f32, {3}), two(kind, DType::f32, {2}),
        half(kind, DType::bf16, {1, 4, 4, 3});
    const View none;
    const auto call = [&](const View& mean, const View& residual) {
      return error_text(
          [&] { kernels::conv2d_norm(queue_on(kind), y, x, w, none, mean, three, none, none, residual, {}); });
    };
    EXPECT_THAT(call(two, none),
                testing::HasSubstr("conv2d_norm: expected mean, var, weight and norm_bias f32[3], got f32[2]"));
    EXPECT_THAT(call(three, half),
                testing::HasSubstr("conv2d_norm: expected a residual f32[1,4,4,3], got bf16[1,4,4,3]"));
  }
}

}  // namespace
}  // namespace weft::tests
