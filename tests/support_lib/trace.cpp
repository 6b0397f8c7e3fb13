// SPDX-License-Identifier: Apache-2.0
#include "apps/support/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace weft::support {
namespace {

constexpr double kHole = support::CurvePoint::kUnknown;

std::vector<Point> line(const std::vector<double>& values) {
  std::vector<Point> out;
  for (size_t i = 0; i < values.size(); ++i) out.push_back({static_cast<double>(i), values[i]});
  return out;
}

std::vector<double> ys(const std::vector<Point>& points) {
  std::vector<double> out;
  for (const Point& p : points) out.push_back(p.y);
  return out;
}

TEST(Smoothed, StartsAtTheFirstValue) {
  EXPECT_EQ(ys(smoothed(line({4, 4, 4}), 0.9)), (std::vector<double>{4, 4, 4}));
  const std::vector<double> two = ys(smoothed(line({0, 1}), 0.5));
  EXPECT_DOUBLE_EQ(two[1], (0.5 * 0 + 1 * 0.5) / (1 - 0.25));  // 2/3: the newer one counts twice
}

TEST(Smoothed, GapsCountForNothing) {
  const std::vector<double> out = ys(smoothed(line({kHole, 2, kHole, 2}), 0.9));
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[2]));
  EXPECT_DOUBLE_EQ(out[1], 2);
  EXPECT_DOUBLE_EQ(out[3], 2);
}

TEST(Thinned, KeepsEveryPeak) {
  std::vector<double> values(10000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<double>(i) * 0.7);
  values[1234] = 50;
  values[7777] = -50;
  const std::vector<Point> all = line(values), few = thinned(all, 0, 9999, 100);
  EXPECT_LE(few.size(), 404u);
  EXPECT_GE(few.size(), 200u);
  const auto holds = [&](double x, double y) {
    return std::any_of(few.begin(), few.end(), [&](const Point& p) { return p.x == x && p.y == y; });
  };
  EXPECT_TRUE(holds(1234, 50));
  EXPECT_TRUE(holds(7777, -50));
  EXPECT_TRUE(holds(0, values[0]));
  EXPECT_TRUE(holds(9999, values[9999]));
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
  // In each column: the same extremes as all points have.
  for (int column = 0; column < 100; ++column) {
    const auto range_of = [&](const std::vector<Point>& points) {
      double low = HUGE_VAL, high = -HUGE_VAL;
      for (const Point& p : points)
        if (std::floor(p.x / 9999 * 100) == column) low = std::min(low, p.y), high = std::max(high, p.y);
      return std::pair(low, high);
    };
    EXPECT_EQ(range_of(few), range_of(all)) << column;
  }
}

TEST(Thinned, GapsBetweenPointsStay) {
  std::vector<double> values(1000, 1.0);
  for (size_t i = 300; i < 400; ++i) values[i] = kHole;
  const std::vector<Point> few = thinned(line(values), 0, 999, 10);
  EXPECT_EQ(std::count_if(few.begin(), few.end(), [](const Point& p) { return p.is_gap(); }), 1);
  const auto gap = std::find_if(few.begin(), few.end(), [](const Point& p) { return p.is_gap(); });
  EXPECT_EQ(std::prev(gap)->x, 299);
  EXPECT_EQ(std::next(gap)->x, 400);
}

TEST(Thinned, FewPointsStayAsTheyAre) {
  const std::vector<Point> points = line({1, kHole, 3});
  EXPECT_EQ(thinned(points, 0, 2, 10).size(), 3u);
  EXPECT_EQ(thinned({}, 0, 1, 10).size(), 0u);
  EXPECT_EQ(thinned(line(std::vector<double>(100, 1.0)), 5, 5, 10).size(), 100u);  // no width
}

TEST(PointsOf, StepEpochTime) {
  support::Curve curve{.name = "loss"};
  curve.add({.step = 10, .epoch = 1, .time = 107, .value = 3});
  EXPECT_EQ(points_of(curve, "step", 100)[0].x, 10);
  EXPECT_EQ(points_of(curve, "epoch", 100)[0].x, 1);
  EXPECT_EQ(points_of(curve, "time", 100)[0].x, 7);
  curve.add({.step = 11, .value = 3});
  EXPECT_TRUE(points_of(curve, "epoch", 100)[1].is_gap());  // it has none
}

}  // namespace
}  // namespace weft::support
