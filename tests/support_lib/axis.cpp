// SPDX-License-Identifier: Apache-2.0
#include "apps/support/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

namespace weft::support {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Scale = Axis::Scale;

std::vector<std::string> texts(const Axis& axis) {
  std::vector<std::string> out;
  for (const Axis::Tick& tick : axis.ticks()) out.push_back(tick.text);
  return out;
}

TEST(Axis, RoundNumbers) {
  EXPECT_THAT(texts(Axis(0, 100, Scale::linear, 5)), ElementsAre("0", "20", "40", "60", "80", "100"));
  EXPECT_THAT(texts(Axis(0.083, 0.2027, Scale::linear, 4)), ElementsAre("0.10", "0.15", "0.20"));
  EXPECT_THAT(texts(Axis(-0.3, 0.3, Scale::linear, 3)), ElementsAre("-0.2", "0", "0.2"));
  EXPECT_THAT(texts(Axis(0, 3e6, Scale::linear, 3)), ElementsAre("0", "1e+06", "2e+06", "3e+06"));
  EXPECT_THAT(texts(Axis(0, 3e-5, Scale::linear, 3)), ElementsAre("0", "0.00001", "0.00002", "0.00003"));
  EXPECT_THAT(texts(Axis(0, 3e-9, Scale::linear, 3)), ElementsAre("0", "1e-09", "2e-09", "3e-09"));
  EXPECT_THAT(texts(Axis(0.4, 7, Scale::linear, 1)), ElementsAre("2", "4", "6"));  // never fewer than two
}

TEST(Axis, OneValueLiesInTheMiddle) {
  for (const double value : {0.0, 5.0, -3.0}) EXPECT_DOUBLE_EQ(Axis(value, value, Scale::linear, 4).share(value), 0.5);
  EXPECT_DOUBLE_EQ(Axis(7, 7, Scale::log, 4).share(7), 0.5);
}

TEST(Axis, NeighbouringDoublesHaveNothingBetween) {  // where a tick's number plus one is the same number
  for (const double value : {0.1, 1e17, 1e300}) {
    const double next = std::nextafter(value, HUGE_VAL);
    EXPECT_THAT(texts(Axis(value, next, Scale::linear, 4)), IsEmpty()) << value;
    EXPECT_THAT(texts(Axis(-next, -value, Scale::linear, 4)), IsEmpty()) << value;
  }
}

TEST(Axis, LogHasDecadesOrWhatLiesBetween) {
  EXPECT_THAT(texts(Axis(0.001, 10, Scale::log, 5)), ElementsAre("0.001", "0.01", "0.1", "1", "10"));
  EXPECT_THAT(texts(Axis(0.08, 0.4, Scale::log, 5)), ElementsAre("0.1", "0.2", "0.3"));
  EXPECT_THAT(texts(Axis(1e-12, 1, Scale::log, 4)), ElementsAre("1e-12", "1e-09", "1e-06", "0.001", "1"));
  EXPECT_THAT(texts(Axis(0.11, 0.12, Scale::log, 4)), ElementsAre("0.11", "0.12"));
  EXPECT_DOUBLE_EQ(Axis(0.01, 100, Scale::log, 5).share(1), 0.5);
  for (const auto& [low, high] : {std::pair{1.7e308, 1.7e308}, std::pair{5e-324, 5e-324}, std::pair{5e-324, 1.7e308}}) {
    const Axis axis(low, high, Scale::log, 4);
    EXPECT_LE(axis.ticks().size(), 6u) << low;
    EXPECT_TRUE(axis.share(low) >= 0 && axis.share(high) <= 1) << axis.share(low) << " to " << axis.share(high);
  }
}

TEST(Axis, ClockCountsInMinutesAndHours) {
  EXPECT_THAT(texts(Axis(0, 100, Scale::clock, 4)), ElementsAre("0:00", "0:30", "1:00", "1:30"));
  EXPECT_THAT(texts(Axis(0, 14400, Scale::clock, 4)), ElementsAre("0:00", "1:00:00", "2:00:00", "3:00:00", "4:00:00"));
  EXPECT_THAT(texts(Axis(0, 1, Scale::clock, 4)), ElementsAre("0", "0.5", "1.0"));
}

TEST(NumberText, FourDigits) {
  EXPECT_EQ(number_text(0.085312), "0.08531");
  EXPECT_EQ(number_text(1234.5), "1234");
  EXPECT_EQ(number_text(500000), "500000");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(1.25e-5), "1.25e-05");
  EXPECT_EQ(number_text(0.0 / 0.0), "-");
}

}  // namespace
}  // namespace weft::support
