// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "apps/nersc_vit/forecast_loss.h"
#include "apps/nersc_vit/forecast_vit.h"
#include "apps/nersc_vit/warmed_cosine.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/random.h"
#include "tests/support/error_text.h"

namespace weft::nersc_vit {
namespace {

TEST(ForecastLoss, RelativeL2IsAMeanOverTheSamples) {
  // Norms 5 and 2; errors 3 and 1.
  const Tensor target = Tensor::from(std::vector<float>{3, 4, 2, 0}, {2, 1, 2, 1}),
               prediction = Tensor::from(std::vector<float>{3, 1, 2, 1}, {2, 1, 2, 1});
  EXPECT_FLOAT_EQ(static_cast<float>(relative_l2_loss(prediction, target).item()), (3.0f / 5 + 1.0f / 2) / 2);
}

TEST(ForecastLoss, RmseWeighsByLatitude) {
  // Five rows from pole to pole: cosines 0, sqrt(1/2), 1, sqrt(1/2), 0.
  const double diagonal = std::sqrt(0.5), sum = 1 + 2 * diagonal;
  std::vector<float> errors(2 * 5 * 1 * 2);
  const auto at = [&](int sample, int row, int channel) -> float& {
    return errors[static_cast<size_t>((sample * 5 + row) * 2 + channel)];
  };
  at(0, 0, 0) = 100;  // the pole counts nothing
  at(0, 2, 0) = 3;
  at(1, 1, 1) = 2;
  const Tensor rmse = latitude_weighted_rmse(Tensor::from(errors, {2, 5, 1, 2}), Tensor::zeros({2, 5, 1, 2}));
  const std::vector<double> got = rmse.to_vector<double>();
  ASSERT_EQ(got.size(), 2u);
  EXPECT_NEAR(got[0], 0.5 * 3 * std::sqrt(1 / sum), 1e-4);  // cos(90 degrees) in f32 is 1e-8 short of 0
  EXPECT_NEAR(got[1], 0.5 * 2 * std::sqrt(diagonal / sum), 1e-5);
}

TEST(WarmedCosine, IsTheLesserOfTheTwo) {
  const WarmedCosine cold(100, 0), warm(100, 10);
  EXPECT_DOUBLE_EQ(cold.lr(0, 2), 2);
  EXPECT_DOUBLE_EQ(cold.lr(50, 2), 1);
  EXPECT_DOUBLE_EQ(warm.lr(0, 2), 0.2);
  EXPECT_DOUBLE_EQ(warm.lr(4, 2), 1);
  EXPECT_DOUBLE_EQ(warm.lr(50, 2), 1);
  EXPECT_DOUBLE_EQ(warm.lr(9, 2), cold.lr(9, 2));
}

TEST(ForecastVit, RecomputedBlocksGiveTheSameGradients) {
  std::vector<float> gradients[2];
  for (const bool recompute : {false, true}) {
    manual_seed(1);
    ForecastVit vit({.rows = 8,
                     .columns = 8,
                     .in_channels = 2,
                     .out_channels = 2,
                     .patch = 4,
                     .width = 16,
                     .depth = 2,
                     .heads = 2,
                     .recompute = recompute},
                    dist::make_process_group_alone());
    int runs = 0;
    vit.blocks.front()->register_hooks([&](const nn::Module&, const Tensor&) { ++runs; }, {}, nn::Watch::calls);
    mean(vit(normal({3, 8, 8, 2}, 0, 1, DType::f32))).backward();
    EXPECT_EQ(runs, recompute ? 2 : 1);
    for (const auto& [name, parameter] : vit.parameters()) {
      const std::vector<float> own = parameter.grad().to_vector<float>();
      gradients[recompute].insert(gradients[recompute].end(), own.begin(), own.end());
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

TEST(ForecastVit, PatchesGoBackToTheirPlaces) {
  manual_seed(1);
  ForecastVit vit(
      {.rows = 8, .columns = 12, .in_channels = 3, .out_channels = 2, .patch = 4, .width = 16, .depth = 1, .heads = 2},
      dist::make_process_group_alone());
  const Tensor y = vit(Tensor::ones({2, 8, 12, 3}));
  EXPECT_EQ(y.sizes(), (Shape{2, 8, 12, 2}));
  // With a head that gives each token the numbers 0 … 31 of its first feature's sign, a patch shows them row by row.
  vit.head.weight.detach().fill_(0);
  vit.norm.weight.detach().fill_(0);
  vit.norm.bias.detach().fill_(0);
  vit.norm.bias.detach().slice(0, 0, 1).fill_(1);
  vit.head.weight.detach().select(1, 0).copy_(Tensor::arange(32, DType::f32));
  const std::vector<float> values = vit(Tensor::ones({1, 8, 12, 3})).to_vector<float>();
  for (int64_t row = 0; row < 8; ++row)
    for (int64_t column = 0; column < 12; ++column)
      for (int64_t channel = 0; channel < 2; ++channel)
        EXPECT_EQ(values[static_cast<size_t>((row * 12 + column) * 2 + channel)],
                  static_cast<float>((row % 4 * 4 + column % 4) * 2 + channel));
}

TEST(ForecastVit, HasTheParametersOfTheModel) {
  // NERSC's: patch 8, 20 channels, 4050 tokens, width 384, 12 blocks.
  const nn::SkipInit skip;
  ForecastVit vit({}, dist::make_process_group_alone());
  const int64_t d = 384, block = 12 * d * d + 13 * d;
  EXPECT_EQ(nn::parameter_count(vit), 12 * block + (20 * 64 * d + d) + 4050 * d + 2 * d + d * 20 * 64);
}

TEST(ForecastVit, RefusesOtherFields) {
  ForecastVit vit(
      {.rows = 8, .columns = 8, .in_channels = 1, .out_channels = 1, .patch = 4, .width = 8, .depth = 1, .heads = 1},
      dist::make_process_group_alone());
  EXPECT_THAT(error_text([&] {
                vit(Tensor::zeros({1, 8, 12, 1}));
              }),
              testing::HasSubstr("ForecastVit: expected fields of 8 x 8, got "));
  EXPECT_THAT(error_text([&] { ForecastVit({.depth = 0}, dist::make_process_group_alone()); }),
              testing::HasSubstr("expected at least one block, got 0"));
}

}  // namespace
}  // namespace weft::nersc_vit
