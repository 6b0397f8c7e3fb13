// SPDX-License-Identifier: Apache-2.0
#include "data/sets.h"

#include <set>

#include "data/loader.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

/// Samples 100, 101, ….
struct Count {
  int64_t n = 0, first = 100;
  int64_t size() const { return n; }
  int64_t get(int64_t i) const { return first + i; }
};

std::shared_ptr<const Count> count(int64_t n, int64_t first = 100) {
  return std::make_shared<const Count>(Count{n, first});
}

template <class Set>
std::vector<int64_t> samples_of(const std::shared_ptr<Set>& set) {
  Loader loader(set, Sampler(set->size(), {.shuffle = false}), {.batch_size = 3, .workers = 2});
  loader.start(0);
  std::vector<int64_t> samples;
  while (const auto batch = loader.next())
    for (const int64_t one : batch->tensors[0].template to_vector<int64_t>()) samples.push_back(one);
  return samples;
}

TEST(Sets, SubsetHasSomeSamplesInOrder) {
  EXPECT_EQ(samples_of(subset(count(10), {7, 7, 0})), (std::vector<int64_t>{107, 107, 100}));
}

TEST(Sets, RandomSplitCutsEachSampleIntoOnePart) {
  const auto parts = random_split(count(11), {0.5, 0.3, 0.2}, 5);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0]->size() + parts[1]->size() + parts[2]->size(), 11);
  EXPECT_EQ(parts[0]->size(), 6) << "5.5: the first parts get what rounding leaves";
  EXPECT_EQ(parts[1]->size(), 3);
  std::multiset<int64_t> all;
  for (const auto& part : parts)
    for (const int64_t one : samples_of(part)) all.insert(one);
  EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 11u);
  EXPECT_EQ(all.size(), 11u);
  EXPECT_EQ(random_split(count(11), {0.5, 0.3, 0.2}, 5)[1]->indices(), parts[1]->indices());
  EXPECT_NE(random_split(count(11), {0.5, 0.3, 0.2}, 6)[0]->indices(), parts[0]->indices());
}

TEST(Sets, RandomSplitsOfSharesThatAreNearlyOneDoNotOverlap) {
  const auto parts = random_split(count(10'000'000), {0.5000004, 0.5000005});
  EXPECT_EQ(parts[0]->size() + parts[1]->size(), 10'000'000);
}

TEST(Sets, ConcatIsOneSetAfterAnother) {
  EXPECT_EQ(samples_of(concat(count(2), count(0), count(3, 7))), (std::vector<int64_t>{100, 101, 7, 8, 9}));
}

TEST(Sets, MapAndFilter) {
  const auto doubled = map(count(6), [](int64_t x) { return 2 * x; });
  EXPECT_EQ(samples_of(doubled), (std::vector<int64_t>{200, 202, 204, 206, 208, 210}));
  EXPECT_EQ(samples_of(filter(doubled, [](int64_t x) { return x % 4 == 0; })), (std::vector<int64_t>{200, 204, 208}));
  const auto random = map(count(6), [](int64_t x, Draw& draw) { return x + 1000 * draw.below(1000000); });
  EXPECT_EQ(samples_of(random), samples_of(random)) << "a draw is of (seed, epoch, index)";
  EXPECT_NE(samples_of(random), samples_of(count(6)));
}

TEST(Sets, RowsOfTensorsAreSamples) {
  const auto set =
      rows(Tensor::arange(6, DType::f32).reshape({3, 2}), Tensor::from(std::vector<int64_t>{4, 5, 6}, {3}));
  Loader loader(set, Sampler(3, {.shuffle = false}), {.batch_size = 2});
  loader.start(0, 1);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->tensors[0].to_vector<float>(), (std::vector<float>{4, 5}));
  EXPECT_EQ(batch->tensors[0].sizes(), (Shape{1, 2}));
  EXPECT_EQ(batch->tensors[1].to_vector<int64_t>(), (std::vector<int64_t>{6}));
}

TEST(Sets, RefuseWhatIsNoSet) {
  const std::shared_ptr<const Count> none;
  EXPECT_THAT(error_text([&] { subset(none, {}); }), HasSubstr("subset: expected a set, got a null pointer"));
  EXPECT_THAT(error_text([] { subset(count(3), {0, 3}); }), HasSubstr("expected indices from 0 to 2, got 3"));
  for (const int64_t index : {-1, 1}) {
    Draw its(0, 0);
    EXPECT_EQ(error_text([&] { subset(count(3), {2})->get(index, its); }),
              str("subset: expected an index from 0 to 0, got ", index));
  }
  EXPECT_THAT(error_text([&] { random_split(none, {1}); }), HasSubstr("random_split: expected a set"));
  EXPECT_THAT(error_text([] { random_split(count(3), {0.5, 0.2}); }), HasSubstr("shares whose sum is 1, got 0.7"));
  EXPECT_THAT(error_text([] { random_split(count(3), {1.5, -0.5}); }), HasSubstr("shares of at least 0, got -0.5"));
  EXPECT_THAT(error_text([] {
                random_split(count(2), {0.4, 0.3, 0.3});
              }),
              HasSubstr("at least one sample for the share 0.3"));
  EXPECT_THAT(error_text([&] { concat(count(3), none); }), HasSubstr("concat: expected sets, got a null pointer"));
  EXPECT_THAT(error_text([&] { map(none, [](int64_t x) { return x; }); }), HasSubstr("map: expected a set"));
  EXPECT_THAT(error_text([&] { filter(none, [](int64_t) { return true; }); }), HasSubstr("filter: expected a set"));
  EXPECT_THAT(error_text([] { rows(Tensor::zeros({3}), Tensor::zeros({2})); }), HasSubstr("as many rows as the first"));
  Draw draw(0, 0);
  EXPECT_THAT(error_text([&] { concat(count(3))->get(3, draw); }), HasSubstr("expected an index from 0 to 2, got 3"));
}

}  // namespace
}  // namespace weft::data::testing
