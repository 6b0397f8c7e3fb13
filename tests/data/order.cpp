// SPDX-License-Identifier: Apache-2.0
#include "data/order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "data/loader.h"
#include "data/sampler.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

std::vector<int64_t> drawn(const std::shared_ptr<const Order>& order, int64_t epoch, SamplerOptions options = {}) {
  const Sampler sampler(order, options);
  std::vector<int64_t> indices;
  for (int64_t p = 0; p < sampler.size(); ++p) indices.push_back(sampler.index(epoch, p));
  return indices;
}

TEST(Order, WeightedDrawsInProportion) {
  constexpr int64_t kDraws = 40000;
  const auto order = weighted({1, 0, 3, 4}, {.samples = kDraws});
  EXPECT_EQ(Sampler(order).set_size(), 4);
  std::map<int64_t, int64_t> counts;
  for (const int64_t index : drawn(order, 3)) ++counts[index];
  EXPECT_EQ(counts[1], 0);
  for (const auto& [index, share] : {std::pair{0, 0.125}, {2, 0.375}, {3, 0.5}})
    EXPECT_NEAR(static_cast<double>(counts[index]) / kDraws, share, 6 * 0.5 / std::sqrt(kDraws)) << index;
  EXPECT_NE(drawn(order, 0), drawn(order, 1));
  EXPECT_NE(drawn(order, 0), drawn(order, 0, {.seed = 1}));
  EXPECT_EQ(drawn(order, 1), drawn(weighted({1, 0, 3, 4}, {.samples = kDraws}), 1));
}

TEST(Order, WithoutReplacementEachComesOnce) {
  std::vector<double> weights(50, 1.0);
  weights[7] = 1e6;
  weights[8] = 0;
  const auto order = weighted(weights, {.samples = 10, .replacement = false});
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const std::vector<int64_t> indices = drawn(order, epoch);
    const std::set<int64_t> different(indices.begin(), indices.end());
    EXPECT_EQ(different.size(), 10u);
    EXPECT_EQ(indices[0], 7) << "its weight is 99.99% of all";
    EXPECT_FALSE(different.count(8));
  }
}

TEST(Order, RanksShareItAsTheyShareAnyOrder) {
  const auto order = weighted({1, 2, 3}, {.samples = 12});
  const std::vector<int64_t> alone = drawn(order, 2);
  for (int rank = 0; rank < 3; ++rank) {
    const std::vector<int64_t> mine = drawn(order, 2, {.rank = rank, .world = 3});
    ASSERT_EQ(mine.size(), 4u);
    for (size_t p = 0; p < 4; ++p) EXPECT_EQ(mine[p], alone[3 * p + static_cast<size_t>(rank)]);
  }
}

TEST(Order, ClassWeightsDrawEachClassAlike) {
  EXPECT_EQ(class_weights({5, 0, 5, 5, 5}), (std::vector<double>{0.25, 1, 0.25, 0.25, 0.25}));
}

TEST(Order, BatchesByLengthHoldSimilarLengths) {
  constexpr int64_t kBatch = 8, kSamples = 203;
  std::vector<int64_t> lengths(kSamples);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = static_cast<int64_t>(i * 37 % 101);
  const auto order = by_length(lengths, {.batch_size = kBatch, .pool = 5});
  for (const int64_t epoch : {0, 1}) {
    const std::vector<int64_t> indices = drawn(order, epoch);
    std::vector<int64_t> sorted = indices;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < kSamples; ++i) ASSERT_EQ(sorted[static_cast<size_t>(i)], i) << "each sample once";
    int64_t padding = 0;
    std::vector<int64_t> longest;
    for (int64_t begin = 0; begin + kBatch <= kSamples; begin += kBatch) {
      std::vector<int64_t> batch;
      for (int64_t i = begin; i < begin + kBatch; ++i)
        batch.push_back(lengths[static_cast<size_t>(indices[static_cast<size_t>(i)])]);
      const int64_t most = *std::max_element(batch.begin(), batch.end());
      for (const int64_t length : batch) padding += most - length;
      longest.push_back(most);
    }
    EXPECT_LT(padding, 203 * 50 / 4) << "a shuffled set has about 40 of 100 padded";
    EXPECT_FALSE(std::is_sorted(longest.begin(), longest.end())) << "batches come in random order";
  }
  EXPECT_NE(drawn(order, 0), drawn(order, 1));
  EXPECT_EQ(drawn(order, 0), drawn(by_length(lengths, {.batch_size = kBatch, .pool = 5}), 0));
  EXPECT_EQ(drawn(by_length({3, 1, 2}, {.batch_size = 64, .pool = 1000000000}), 0), (std::vector<int64_t>{1, 2, 0}));
}

TEST(Order, RefusesWhatIsNoOrder) {
  const auto refused = [](auto&& make) { return error_text([&] { static_cast<void>(make()); }); };
  EXPECT_THAT(refused([] { return weighted({}); }), HasSubstr("weights with a finite sum, got 0 with the sum 0"));
  EXPECT_THAT(refused([] { return weighted({0, 0}); }), HasSubstr("expected at least one weight above 0"));
  EXPECT_THAT(refused([] { return weighted({1, -1}); }), HasSubstr("got -1 for sample 1"));
  EXPECT_THAT(refused([] { return weighted({1, NAN}); }), HasSubstr("got nan for sample 1"));
  EXPECT_THAT(refused([] {
                return weighted({1, 1}, {.samples = -3});
              }),
              HasSubstr("at least one sample in an epoch, got -3"));
  EXPECT_THAT(refused([] {
                return weighted({1, 0, 1}, {.samples = 3, .replacement = false});
              }),
              HasSubstr("expected at most 2 samples without replacement"));
  EXPECT_THAT(refused([] { return class_weights({}); }), HasSubstr("class_weights: expected at least one label"));
  EXPECT_THAT(refused([] { return by_length({}); }), HasSubstr("by_length: expected at least one length"));
  EXPECT_THAT(refused([] { return by_length({1, -2}); }), HasSubstr("got -2 for sample 1"));
  EXPECT_THAT(refused([] { return by_length({1}, {.batch_size = 0}); }), HasSubstr("of at least 1, got 0 and 100"));
  EXPECT_THAT(refused([] { return Sampler(std::shared_ptr<const Order>()); }),
              HasSubstr("expected an order, got a null pointer"));
}

/// Index 5 fails, 6 is none of the set.
struct Broken : Order {
  int64_t set_size() const override { return 4; }
  int64_t size() const override { return 8; }
  int64_t index(uint64_t, int64_t, int64_t position) const override {
    if (position == 5) throw std::runtime_error("no fifth");
    return position == 6 ? 4 : position % 4;
  }
};

struct Drawn {
  int64_t size() const { return 4; }
  int64_t get(int64_t, Draw& draw) const { return draw.below(1 << 30); }
};

TEST(Order, EachPositionHasItsOwnDraw) {
  Loader loader(std::make_shared<const Drawn>(), Sampler(weighted({1, 0, 0, 0}, {.samples = 8})), {.batch_size = 8});
  loader.start(0);
  const std::vector<int64_t> values = loader.next()->tensors[0].to_vector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()).size(), 8u) << "one sample, eight times";
}

TEST(Order, ItsFailuresReachNext) {
  for (const int workers : {0, 2}) {
    Loader loader(std::make_shared<const Drawn>(), Sampler(std::make_shared<Broken>()),
                  {.batch_size = 2, .workers = workers});
    loader.start(0, 2);
    EXPECT_THROW(loader.next(), std::runtime_error);
    loader.start(0, 3);
    EXPECT_THAT(error_text([&] { loader.next(); }),
                HasSubstr("expected an index from 0 to 3 of the order at position 6, got 4"));
  }
}

}  // namespace
}  // namespace weft::data::testing
