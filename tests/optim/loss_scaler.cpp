// SPDX-License-Identifier: Apache-2.0
#include "optim/loss_scaler.h"

#include "tests/support/error_text.h"

namespace weft::optim {
namespace {

TEST(LossScaler, ShrinksAtAnOverflowAndGrowsAfterManyGoodSteps) {
  LossScaler scaler({.scale = 1024, .growth = 4, .backoff = 0.25, .growth_interval = 3});
  EXPECT_FALSE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_TRUE(scaler.update(true));
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_FALSE(scaler.update(false)) << "it counts anew from here";
  EXPECT_EQ(scaler.scale(), 64);
  for (const double expected : {64, 64, 256, 256, 256, 1024}) {
    EXPECT_TRUE(scaler.update(true));
    EXPECT_EQ(scaler.scale(), expected);
  }
}

TEST(LossScaler, GoesOnFromItsState) {
  LossScaler scaler({.growth_interval = 3}), resumed({.growth_interval = 3});
  scaler.update(false);
  scaler.update(true);
  scaler.update(true);
  resumed.load_state_dict(scaler.state_dict());
  EXPECT_EQ(resumed.scale(), 32768);
  EXPECT_TRUE(resumed.update(true));
  EXPECT_EQ(resumed.scale(), 65536);
  EXPECT_EQ(error_text([&] {
              resumed.load_state_dict({{}, {{"scale", 0}, {"good_steps", 1}}});
            }),
            "loss_scaler: expected a finite saved scale above 0, got 0");
  EXPECT_EQ(error_text([&] {
              resumed.load_state_dict({{}, {{"scale", 2}}});
            }),
            "state dict: no number named 'good_steps'");
  EXPECT_EQ(resumed.scale(), 65536);
}

TEST(LossScaler, RefusesWhatCannotWork) {
  for (const LossScalerOptions& bad : {LossScalerOptions{.scale = 0}, LossScalerOptions{.growth = 0.5},
                                       LossScalerOptions{.backoff = 2}, LossScalerOptions{.growth_interval = 0}})
    EXPECT_THAT(error_text([&] { LossScaler scaler(bad); }),
                ::testing::HasSubstr("loss_scaler: expected a scale above 0"));
}

}  // namespace
}  // namespace weft::optim
