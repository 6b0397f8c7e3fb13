// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/early_stop.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "tests/support/temporary_folder.h"

namespace weft::weft_sweep {
namespace {

class EarlyStops : public testing::Test {
 protected:
  /// A point whose run has these values of `loss`; "null" is not a number.
  size_t add(const std::vector<std::string>& values) {
    const size_t point = sweep_.points.size();
    sweep_.points.push_back({{"x", std::to_string(point)}});
    const std::filesystem::path run = sweep_.folder_of(sweep_.points[point]);
    std::filesystem::create_directories(run);
    log(point, values);
    return point;
  }
  void log(size_t point, const std::vector<std::string>& values) {
    std::ofstream file(sweep_.folder_of(sweep_.points[point]) / "metrics.jsonl", std::ios::app);
    for (const std::string& value : values) file << "{\"step\":" << ++steps_ << ",\"loss\":" << value << "}\n";
  }
  tests::TemporaryFolder folder_;
  Sweep sweep_{
      .folder = folder_ / "sweep", .command = {}, .points = {}, .metric = "loss", .halving = Sweep::Halving{2, 2}};
  int steps_ = 0;
};

TEST_F(EarlyStops, TheBestOfEtaGoOn) {
  // After two values: 4, 3, 2, 1 in the order of their coming.
  const size_t first = add({"9", "4"}), second = add({"9", "3"}), third = add({"9", "2"}), fourth = add({"0", "1"});
  EarlyStop stop(sweep_);
  EXPECT_TRUE(stop.loses(first));
  EXPECT_TRUE(stop.loses(second));  // two of four go on
  EXPECT_FALSE(stop.loses(third));
  EXPECT_FALSE(stop.loses(fourth));
  // After four: the first to come is the best of one; the next must beat it.
  log(third, {"9", "2"});
  EXPECT_FALSE(stop.loses(third));
  log(fourth, {"9", "3"});
  EXPECT_TRUE(stop.loses(fourth));
}

TEST_F(EarlyStops, NobodyIsJudgedBeforeTheFirstDecisionOrBetweenTwo) {
  add({"1", "1", "1", "1"});
  const size_t slow = add({"9"});
  EarlyStop stop(sweep_);
  EXPECT_FALSE(stop.loses(slow));
  log(slow, {"0.5", "9"});
  EXPECT_FALSE(stop.loses(slow));  // 0.5 counts, 9 not yet
  log(slow, {"8"});
  EXPECT_TRUE(stop.loses(slow));
}

TEST_F(EarlyStops, EqualOnesGoOnAndNoNumberIsTheWorst) {
  const size_t a = add({"1", "1"}), b = add({"1", "1"}), diverged = add({"0", "null"});
  EarlyStop stop(sweep_);
  EXPECT_FALSE(stop.loses(a));
  EXPECT_FALSE(stop.loses(b));
  EXPECT_TRUE(stop.loses(diverged));
}

TEST_F(EarlyStops, TheLargestOrTheBestSoFarMayWin) {
  const size_t low = add({"5", "1"}), high = add({"2", "3"});
  sweep_.smaller_wins = false;
  EXPECT_TRUE(EarlyStop(sweep_).loses(low));
  EXPECT_FALSE(EarlyStop(sweep_).loses(high));
  sweep_.by_best = true;
  EXPECT_FALSE(EarlyStop(sweep_).loses(low));
  EXPECT_TRUE(EarlyStop(sweep_).loses(high));
}

TEST_F(EarlyStops, TheNextDecisionMayLieBeyondAllNumbers) {
  sweep_.halving = Sweep::Halving{2, std::numeric_limits<int64_t>::max()};
  const size_t point = add({"1", "1"});
  EXPECT_FALSE(EarlyStop(sweep_).loses(point));
}

TEST_F(EarlyStops, NobodyIsJudgedFromTheLastIterationOn) {
  add({"1", "1", "1", "1"});
  const size_t worse = add({"1", "1", "1", "9"});
  sweep_.halving->max_iter = 4;
  EXPECT_FALSE(EarlyStop(sweep_).loses(worse));
  sweep_.halving->max_iter = 5;
  EXPECT_TRUE(EarlyStop(sweep_).loses(worse));
}

TEST_F(EarlyStops, ARunWithoutTheMetricIsNotJudged) {
  add({"1", "1"});
  sweep_.points.push_back({{"x", "none"}});
  EXPECT_FALSE(EarlyStop(sweep_).loses(1));
}

}  // namespace
}  // namespace weft::weft_sweep
