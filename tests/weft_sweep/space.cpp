// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/error_text.h"
#include "train/exit.h"

namespace weft::weft_sweep {
namespace {

using testing::ElementsAre;
using Kind = Parameter::Kind;

std::vector<std::string> names(const std::vector<Point>& points) {
  std::vector<std::string> out;
  for (const Point& point : points) out.push_back(name_of(point));
  return out;
}

TEST(Parameter, ListsAndRanges) {
  EXPECT_THAT(parse_parameter("lr=1e-5,5e-5").values, ElementsAre("1e-5", "5e-5"));
  EXPECT_THAT(parse_parameter("data=a=b").values, ElementsAre("a=b"));
  const Parameter range = parse_parameter("dropout=-0.5..0.5");
  EXPECT_EQ(range.kind, Kind::uniform);
  EXPECT_EQ(range.low, -0.5);
  EXPECT_EQ(range.high, 0.5);
  EXPECT_EQ(parse_parameter("lr=log:1e-5..1e-1").kind, Kind::log_uniform);
  EXPECT_EQ(parse_parameter("depth=int:2..8").kind, Kind::whole);
}

TEST(Parameter, Errors) {
  const auto error = [](const std::string& text) { return error_text([&] { parse_parameter(text); }); };
  for (const char* text : {"lr", "=1", "lr=", ""})
    EXPECT_EQ(error(text), std::string("expected NAME=VALUE,VALUE,… or NAME=LOW..HIGH, got '") + text + "'");
  EXPECT_EQ(error("lr=1,,2"), "lr: expected values between commas, got an empty one");
  EXPECT_EQ(error("lr=1,2,1"), "lr: expected each value once, got '1' twice");
  EXPECT_EQ(error("lr=2..1"), "lr: expected LOW..HIGH with LOW below HIGH, got 2..1");
  EXPECT_EQ(error("lr=log:0..1"), "lr: expected a range above 0 for a log scale, got 0..1");
  EXPECT_EQ(error("n=int:1.5..3"), "n: expected whole numbers of at most 1e9, got 1.5..3");
  EXPECT_EQ(error("lr=a..b"), "lr: expected a number, got 'a'");
}

TEST(Grid, TheLastChangesFastest) {
  EXPECT_THAT(names(grid({parse_parameter("lr=1,2"), parse_parameter("b=x,y,z")})),
              ElementsAre("lr=1,b=x", "lr=1,b=y", "lr=1,b=z", "lr=2,b=x", "lr=2,b=y", "lr=2,b=z"));
  EXPECT_EQ(error_text([] { grid({parse_parameter("lr=1..2")}); }),
            "lr: expected a list of values for a grid, got a range. A random search takes ranges");
  // wandb's grids take these ranges, too.
  EXPECT_THAT(names(grid({parse_parameter("n=int:-1..1"),
                          {.name = "q", .kind = Kind::uniform, .low = 0.1, .high = 1, .step = 0.5}})),
              ElementsAre("n=-1,q=0.5", "n=-1,q=1", "n=0,q=0.5", "n=0,q=1", "n=1,q=0.5", "n=1,q=1"));
  Parameter many{.name = "a"};
  for (int i = 0; i < 1000; ++i) many.values.push_back(std::to_string(i));
  EXPECT_EQ(error_text([&] { grid({many, many}); }), "expected a grid of at most 100000 points, got more");
}

TEST(Random, TheSeedDecides) {
  const std::vector<Parameter> space{parse_parameter("lr=log:1e-5..1e-1"), parse_parameter("b=16,32,64"),
                                     parse_parameter("n=int:2..4"), parse_parameter("p=0..1")};
  const std::vector<Point> all = random_points(space, 200, 7);
  ASSERT_EQ(all.size(), 200u);
  EXPECT_EQ(random_points(space, 200, 7), all);
  EXPECT_NE(random_points(space, 200, 8), all);
  const std::vector<Point> few = random_points(space, 20, 7);
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));  // a longer search continues a shorter one
  int small = 0;
  std::set<std::string> batches, depths;
  for (const Point& point : all) {
    const double lr = std::stod(point[0].second), p = std::stod(point[3].second);
    EXPECT_TRUE(lr >= 1e-5 && lr <= 1e-1) << lr;
    EXPECT_TRUE(p >= 0 && p <= 1) << p;
    small += lr < 1e-3;
    batches.insert(point[1].second);
    depths.insert(point[2].second);
  }
  EXPECT_NEAR(small, 100, 30);  // half of the decades: four standard deviations of 7.1
  EXPECT_THAT(batches, ElementsAre("16", "32", "64"));
  EXPECT_THAT(depths, ElementsAre("2", "3", "4"));
}

TEST(Random, MultiplesAndWeights) {
  const std::vector<Parameter> space{{.name = "width", .kind = Kind::log_uniform, .low = 30, .high = 10'001, .step = 8},
                                     {.name = "b", .values = {"x", "y", "z"}, .weights = {0.9, 0, 0.1}},
                                     parse_parameter("p=0..1")};
  int often = 0;
  for (const Point& point : random_points(space, 500, 3)) {
    const int width = std::stoi(point[0].second);
    EXPECT_TRUE(width % 8 == 0 && width >= 32 && width <= 10'000) << width;
    EXPECT_EQ(std::to_string(width), point[0].second);
    EXPECT_NE(point[1].second, "y");
    often += point[1].second == "x";
  }
  EXPECT_NEAR(often, 450, 30);  // four standard deviations of 6.7
}

TEST(Random, EndsWhenThereAreNoMorePoints) {
  EXPECT_EQ(random_points({parse_parameter("b=1,2"), parse_parameter("n=int:1..2")}, 100, 0).size(), 4u);
}

TEST(Names, ArePathsThatDiffer) {
  EXPECT_EQ(name_of({{"lr", "1e-5"}, {"batch_size", "16"}}), "lr=1e-5,batch_size=16");
  const std::string odd = name_of({{"data", "/a/../b c"}});
  EXPECT_EQ(odd.substr(0, odd.find('~')), "data=_a_.._b_c");
  EXPECT_NE(odd, name_of({{"data", "/a/../b_c"}}));
  EXPECT_EQ(name_of({{"-lr", "1"}}).substr(0, 6), "_lr=1~");
  EXPECT_LT(name_of({{"text", std::string(1000, 'x')}}).size(), 120u);
}

}  // namespace
}  // namespace weft::weft_sweep
