// SPDX-License-Identifier: Apache-2.0
#include "apps/support/run_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::support {
namespace {

constexpr double kGap = CurvePoint::kUnknown;

std::vector<double> steps(const Curve& curve) {
  std::vector<double> out;
  for (const CurvePoint& p : curve.points) out.push_back(p.step);
  return out;
}

Curve curve_of(const std::vector<double>& values) {
  Curve curve;
  for (size_t i = 0; i < values.size(); ++i) curve.add({.step = static_cast<double>(i + 1), .value = values[i]});
  return curve;
}

TEST(Curve, AStepThatComesAgainReplacesWhatFollowedIt) {
  Curve curve = curve_of({1, 2, 3, 4, 5});
  curve.add({.step = 3, .value = 30});
  EXPECT_EQ(steps(curve), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(curve.points.back().value, 30);
  curve.add({.step = 1, .value = 10});  // a run started again in the same folder
  EXPECT_EQ(steps(curve), (std::vector<double>{1}));
}

TEST(Curve, StepsOfALaterEpochAreCountedOn) {
  Curve curve;
  curve.add({.step = 10, .epoch = 1, .value = 1});
  curve.add({.step = 20, .epoch = 2, .value = 1});
  curve.add({.step = 10, .epoch = 3, .value = 1});  // a second phase
  curve.add({.step = 20, .epoch = 4, .value = 1});
  curve.add({.step = 10, .epoch = 5, .value = 1});  // a third
  EXPECT_EQ(steps(curve), (std::vector<double>{10, 20, 30, 40, 50}));
  curve.add({.step = 10, .epoch = 5, .value = 2});  // its first epoch made again
  EXPECT_EQ(steps(curve), (std::vector<double>{10, 20, 30, 40, 50}));
  EXPECT_EQ(curve.points.back().value, 2);
}

TEST(Curve, LastAndBestLeaveGapsOut) {
  const Curve curve = curve_of({kGap, 3, 1, 2, 1, HUGE_VAL, kGap});
  EXPECT_EQ(curve.last()->step, 5);
  EXPECT_EQ(curve.best(true)->step, 3);  // the first of two
  EXPECT_EQ(curve.best(false)->step, 2);
  EXPECT_EQ(curve_of({kGap}).last(), nullptr);
  EXPECT_EQ(curve_of({kGap}).best(true), nullptr);
}

TEST(CurveName, LessIsBetter) {
  for (const char* name :
       {"loss/train", "val_loss", "Loss/valid", "RMSE(u10m)/valid", "time_per_epoch", "data_wait", "top1_error"})
    EXPECT_TRUE(less_is_better(name)) << name;
  for (const char* name : {"accuracy/val", "images_per_second", "validation accuracy", "f1", "lr"})
    EXPECT_FALSE(less_is_better(name)) << name;
}

TEST(CurveName, TheSameWordsInAnotherOrder) {
  const std::vector<std::string> names{"loss/train", "loss/val", "Loss/valid", "lr"};
  EXPECT_EQ(find_curve_name("val_loss", names), "loss/val");
  EXPECT_EQ(find_curve_name("loss/val", names), "loss/val");
  EXPECT_EQ(find_curve_name("VALID loss", names), "Loss/valid");
  EXPECT_EQ(find_curve_name("loss", names), std::nullopt);
  EXPECT_EQ(find_curve_name("a_b", {"b_a", "b/a"}), std::nullopt);  // which of them?
}

}  // namespace
}  // namespace weft::support
