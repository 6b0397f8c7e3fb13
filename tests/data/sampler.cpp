// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

std::vector<int64_t> order(const Sampler& sampler, int64_t epoch) {
  std::vector<int64_t> indices;
  for (int64_t p = 0; p < sampler.size(); ++p) indices.push_back(sampler.index(epoch, p));
  return indices;
}

TEST(Sampler, EveryEpochIsAnotherPermutation) {
  const uint64_t seed = std::random_device{}();
  for (const int64_t size : {1, 2, 3, 17, 1000}) {
    const Sampler sampler(size, {.seed = seed});
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> sorted = order(sampler, epoch);
      std::sort(sorted.begin(), sorted.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(sorted[i], i);
    }
  }
  const Sampler sampler(1000, {.seed = seed});
  EXPECT_NE(order(sampler, 0), order(sampler, 1));
  EXPECT_EQ(order(sampler, 1), order(Sampler(1000, {.seed = seed}), 1));
  EXPECT_NE(order(sampler, 0), order(Sampler(1000, {.seed = seed + 1}), 0));
  EXPECT_EQ(order(Sampler(4, {.shuffle = false}), 5), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST(Sampler, RanksShareOneOrder) {
  const uint64_t seed = std::random_device{}();
  const std::vector<int64_t> alone = order(Sampler(10, {.seed = seed}), 2);
  const auto rank = [&](int r, int world, Tail tail) {
    return order(Sampler(10, {.seed = seed, .rank = r, .world = world, .tail = tail}), 2);
  };
  for (int r = 0; r < 4; ++r) {
    std::vector<int64_t> repeat, drop, uneven;
    for (int64_t p = r; p < 12; p += 4) repeat.push_back(alone[p % 10]);
    for (int64_t p = r; p < 8; p += 4) drop.push_back(alone[p]);
    for (int64_t p = r; p < 10; p += 4) uneven.push_back(alone[p]);
    EXPECT_EQ(rank(r, 4, Tail::repeat), repeat);
    EXPECT_EQ(rank(r, 4, Tail::drop), drop);
    EXPECT_EQ(rank(r, 4, Tail::uneven), uneven);
  }
  // More ranks than images: the set repeats as often as needed.
  for (int r = 0; r < 25; ++r) EXPECT_EQ(rank(r, 25, Tail::repeat), std::vector<int64_t>{alone[r % 10]});
  EXPECT_EQ(rank(12, 25, Tail::uneven).size(), 0u);
}

TEST(Sampler, StepsOfAllRanksNeedNotDivideByThem) {
  const std::vector<int64_t> alone = order(Sampler(17, {.seed = 3}), 1);
  for (const int world : {1, 2, 3, 4})
    for (const int64_t step : {4, 5, 7, 30}) {
      std::vector<std::vector<int64_t>> ranks;
      for (int r = 0; r < world; ++r) {
        const Sampler own(17, {.seed = 3, .rank = r, .world = world, .tail = Tail::joined, .step = step});
        EXPECT_EQ(own.batch_size(), step / world + (r < step % world ? 1 : 0));
        EXPECT_EQ(own.size_of_all(), 17);
        ranks.push_back(order(own, 1));
      }
      // Step by step, all ranks together see the samples of a single process.
      for (int64_t begin = 0; begin < 17; begin += step) {
        std::vector<int64_t> together,
            wanted(alone.begin() + begin, alone.begin() + std::min<int64_t>(begin + step, 17));
        for (int r = 0; r < world; ++r) {
          const int64_t batch = step / world + (r < step % world ? 1 : 0), size = static_cast<int64_t>(ranks[r].size());
          for (int64_t p = begin / step * batch; p < std::min(begin / step * batch + batch, size); ++p)
            together.push_back(ranks[r][p]);
        }
        std::sort(together.begin(), together.end());
        std::sort(wanted.begin(), wanted.end());
        EXPECT_EQ(together, wanted) << world << " ranks, steps of " << step << ", at " << begin;
      }
    }
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  EXPECT_THAT(error_text([] { Sampler(0); }), HasSubstr("at least one image, got 0"));
  EXPECT_THAT(error_text([] { Sampler(3, {.rank = 2, .world = 2}); }), HasSubstr("got rank 2 of 2"));
  EXPECT_THAT(error_text([] { Sampler(-3); }), HasSubstr("at least one image, got -3"));
  EXPECT_THAT(error_text([] { Sampler(3, {.world = 4, .tail = Tail::drop}); }),
              HasSubstr("at least one image for each of 4 ranks, got 3, all of which Tail::drop leaves out"));
  EXPECT_THAT(error_text([] { Sampler(3, {.world = 0}); }), HasSubstr("got rank 0 of 0"));
  EXPECT_THAT(error_text([] { Sampler(3).index(0, 3); }), HasSubstr("a position below 3, got 3"));
  EXPECT_THAT(error_text([] { Sampler(9, {.world = 4, .tail = Tail::joined, .step = 3}); }),
              HasSubstr("a step of at least one image for each of 4 ranks, joined, got 3"));
  EXPECT_THAT(error_text([] { Sampler(9, {.world = 4, .step = 8}); }), HasSubstr("4 ranks, joined, got 8"));
}

}  // namespace
}  // namespace weft::data::testing
