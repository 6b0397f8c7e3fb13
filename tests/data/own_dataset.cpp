// SPDX-License-Identifier: Apache-2.0
// A data set of a user's own: any type with size() and get(), any struct as its sample.
#include <set>
#include <stdexcept>

#include "core/ops/binary.h"
#include "core/ops/random.h"
#include "core/random.h"
#include "data/loader.h"
#include "data/text/token_windows.h"
#include "tests/data/fixture.h"
#include "tests/support/devices.h"

namespace weft::data::testing {

struct Readings {
  int64_t step;
  Tensor kind, trace, depth;  // in another order than the sample's
  int64_t count, epoch;
  void fields(auto& v) { v("kind", kind), v("trace", trace), v("depth", depth); }
};

struct Reading {
  using Batch = Readings;
  Tensor trace;
  double depth = 0;
  int64_t kind = 0;
  void fields(auto& v) { v("trace", trace), v("depth", depth), v("kind", kind); }
};

struct Wells {
  int64_t grows = 0;  // 1: a trace is longer with its number
  int64_t size() const { return 10; }
  Reading get(int64_t i, Draw& draw) const { return {Tensor::full({3 + grows * i}, 1.0 * i), draw.uniform(), i % 2}; }
};

TEST(OwnDataset, IsStackedTheSameByAnyNumberOfWorkers) {
  const Sampler order(10, {.seed = 2});
  for (const DeviceKind kind : tests::test_devices())
    for (const int workers : {0, 3}) {
      const LoaderOptions options{.batch_size = 4, .workers = workers, .seed = 7, .device = {kind, 0}};
      Loader loader(std::make_shared<const Wells>(), order, options);
      loader.start(1, 1);
      int64_t position = 4;
      while (const auto batch = loader.next())
        for (int64_t i = 0; i < batch->count; ++i) {
          const int64_t index = order.index(1, position++);
          EXPECT_EQ(batch->trace.select(0, i).to_vector<float>(), std::vector<float>(3, static_cast<float>(index)));
          EXPECT_EQ(batch->depth.select(0, i).item(), Draw::of_sample(7, 1, index).uniform());
          EXPECT_EQ(batch->kind.select(0, i).item(), index % 2);
          EXPECT_EQ(batch->epoch, 1);
          EXPECT_EQ(batch->step, (position - 1) / 4);
        }
      EXPECT_EQ(position, 10);
    }
}

TEST(OwnDataset, NeedsACollateFunctionWhereSizesDiffer) {
  const auto growing = std::make_shared<const Wells>(Wells{.grows = 1});
  const Sampler order(10, {.shuffle = false});
  Loader stacked(growing, order, {.batch_size = 4});
  stacked.start(0);
  EXPECT_THAT(error_text([&] { stacked.next(); }),
              HasSubstr("loader: sample 1: expected 'trace' f32[3] in all samples, got f32[4]"));
  const Device device{tests::test_devices().back(), 0};
  Loader<Reading::Batch> collated(growing, order, {.batch_size = 2, .device = device}, [](const auto& all) {
    const Tensor lengths = Tensor::from(std::vector{all[0].trace.numel(), all[1].trace.numel()});
    return std::vector<Tensor>{lengths + 1, lengths, lengths};  // in the batch's order
  });
  collated.start(0, 1);
  EXPECT_EQ(collated.next()->trace.to_vector<int64_t>(), (std::vector<int64_t>{5, 6}));
  Loader deduced(growing, order, {.batch_size = 1}, [](const auto& all) {
    return std::vector<Tensor>{Tensor::zeros({1}), Tensor::zeros({1}), all[0].trace};
  });
  deduced.start(0, 2);
  EXPECT_EQ(deduced.next()->depth.to_vector<float>(), std::vector<float>(5, 2));
  Loader<Reading::Batch> fewer(growing, order, {.batch_size = 2},
                               [](const auto&) { return std::vector<Tensor>(2, Tensor::zeros({1})); });
  fewer.start(0);
  EXPECT_THAT(error_text([&] { fewer.next(); }), HasSubstr("expected 3 tensors for a batch, got 2"));
}

struct Misnamed {
  Tensor trace, depth, sort;
  void fields(auto& v) { v("trace", trace), v("depth", depth), v("sort", sort); }
};

TEST(OwnDataset, ABatchHasTheNamesOfItsSamples) {
  const auto wells = std::make_shared<const Wells>();
  EXPECT_THAT(error_text([&] { Loader<Misnamed>(stacking(wells), Sampler(10), {}); }),
              HasSubstr("the fields of its samples, trace, depth, kind, each once, got trace, depth, sort"));
  EXPECT_EQ(detail::places_of({"b", "a"}, {"a", "b"}), (std::vector<size_t>{1, 0}));
  EXPECT_EQ(detail::places_of({"b", "a"}, {}), (std::vector<size_t>{0, 1}));
  EXPECT_THAT(error_text([] { detail::places_of({"a", "a"}, {"a", "a"}); }), HasSubstr("each once, got a, a"));
  EXPECT_THAT(error_text([] { detail::places_of({"a"}, {"a", "b"}); }), HasSubstr("a, b, each once, got a"));
}

struct Sized {
  int64_t samples;
  int64_t size() const { return samples; }
  int64_t get(int64_t index) const { return std::vector<int64_t>(static_cast<size_t>(samples), 7).at(index); }
  std::string describe() const { return "seven"; }
};

TEST(OwnDataset, IsAsLargeAsItsSampler) {
  const auto seven = std::make_shared<const Sized>(Sized{7});
  for (const int64_t size : {6, 8})
    EXPECT_THAT(error_text([&] { Loader(seven, Sampler(size)); }),
                HasSubstr(str("expected a sampler of the set's 7 samples, got one of ", size, " for seven")));
  EXPECT_THAT(error_text([] {
                rows_of({Tensor::zeros({3, 2}), Tensor::zeros({4})});
              }),
              HasSubstr("expected 3 rows in each tensor, got f32[4]"));
  EXPECT_THAT(error_text([] { rows_of({}); }), HasSubstr("expected tensors of rows, got none"));
  EXPECT_THAT(error_text([] {
                BatchQueue(rows_of({Tensor::zeros({3, 2})}), Sampler(4), {});
              }),
              HasSubstr("the set's 3 samples, got one of 4"));
  for (const int64_t size : {0, -1})
    EXPECT_THAT(error_text([&] { Loader(std::make_shared<const Sized>(Sized{size}), Sampler(4)); }),
                HasSubstr(str("a set of at least one sample, got ", size, ": seven")));
  EXPECT_THAT(error_text([] { Loader(std::shared_ptr<const Sized>(), Sampler(4)); }), HasSubstr("got a null pointer"));
  const auto tokens = std::make_shared<const std::vector<int64_t>>(9, 1);
  const auto windows = std::make_shared<const TokenWindows>(tokens, 4, 2);
  EXPECT_THAT(error_text([&] { Loader(windows, Sampler(9)); }), HasSubstr("the set's 3 samples, got one of 9"));
  for (const int64_t index : {-1, 3})
    EXPECT_THAT(error_text([&] { windows->get(index); }), HasSubstr(str("an index below 3, got ", index)));
}

/// Draws from Weft's generators, as torch.randn in __getitem__.
struct Noise {
  int64_t size() const { return 40; }
  Tensor get(int64_t index) const { return dropout(normal({8}), 0.5, true) + static_cast<double>(index); }
};

/// An epoch from `step` on, in the order of the set. The loop draws, too.
std::vector<float> noise(Loader<Stacked>& loader, int64_t epoch, int64_t step = 0) {
  std::vector<float> seen;
  loader.start(epoch, step);
  while (const auto batch = loader.next()) {
    const auto values = batch->tensors[0].to_vector<float>();
    seen.insert(seen.end(), values.begin(), values.end());
    normal({4});
  }
  return seen;
}

TEST(OwnDataset, DrawsFromTheGeneratorsAreThoseOfSeedEpochAndIndex) {
  const auto set = std::make_shared<const Noise>();
  const auto run = [&](uint64_t seed, LoaderOptions options, int64_t epoch, int64_t step = 0) {
    manual_seed(seed);
    Loader loader(set, Sampler(40, {.shuffle = false}), options);
    std::vector<float> seen = noise(loader, epoch, step);
    EXPECT_EQ(generator({}).seed, seed) << "the loop's own draws go on";
    EXPECT_EQ(generator({}).offset, static_cast<uint64_t>((40 + options.batch_size - 1) / options.batch_size - step));
    return seen;
  };
  const std::vector<float> first = run(1, {.batch_size = 8, .workers = 0}, 0);
  for (const int workers : {0, 1, 2, 4}) {
    const LoaderOptions options{.batch_size = 8, .workers = workers};
    EXPECT_EQ(run(1, options, 0), first) << workers << " workers";
    EXPECT_NE(run(2, options, 0), first) << "another seed";
    EXPECT_NE(run(1, options, 1), first) << "another epoch";
    EXPECT_NE(run(1, {.batch_size = 8, .workers = workers, .seed = 1}, 0), first);
    EXPECT_EQ(run(1, {.batch_size = 5, .workers = workers, .prefetch = 4}, 0), first);
    EXPECT_EQ(run(1, options, 0, 3), std::vector<float>(first.begin() + 24 * 8, first.end())) << "resumed";
  }
  const std::set<float> all(first.begin(), first.end());
  EXPECT_GT(all.size(), 8 * 40 / 2u) << "other numbers for each sample";
  // Two ranks, whose dropout differs in the model.
  manual_seed(1);
  set_dropout_rank(1);
  for (const int rank : {0, 1}) {
    Loader loader(set, Sampler(40, {.shuffle = false, .rank = rank, .world = 2}), {.batch_size = 1});
    const std::vector<float> own = noise(loader, 0);
    for (int64_t i = 0; i < 20; ++i)
      EXPECT_TRUE(std::equal(own.begin() + i * 8, own.begin() + i * 8 + 8, first.begin() + (2 * i + rank) * 8));
  }
  set_dropout_rank(0);
  // Work begun before another seed is not used.
  manual_seed(3);
  Loader loader(set, Sampler(40, {.shuffle = false}), {.batch_size = 8});
  loader.start(0);
  manual_seed(1);
  EXPECT_EQ(noise(loader, 0), first);
}

TEST(OwnDataset, ACollateFunctionDrawsAlike) {
  std::vector<std::vector<float>> seen;
  for (const int workers : {0, 1, 4, 4}) {
    manual_seed(1);
    Loader<Stacked> loader(std::make_shared<const Noise>(), Sampler(40), {.batch_size = 8, .workers = workers},
                           [](const std::vector<Tensor>& all) { return std::vector{all[0] + uniform({8})}; });
    seen.push_back(noise(loader, 1));
    EXPECT_EQ(seen.back(), seen.front());
  }
}

struct Stubborn {
  int64_t size() const { return 40; }
  int64_t get(int64_t index) const {
    if (index == 13) throw std::domain_error("unlucky");
    if (index == 21) throw 21;
    return index;
  }
};

TEST(OwnDataset, AnExceptionNamesItsSample) {
  for (const int workers : {0, 1, 4}) {
    Loader loader(std::make_shared<const Stubborn>(), Sampler(40, {.shuffle = false}),
                  {.batch_size = 4, .workers = workers});
    loader.start(0, 3);
    try {
      loader.next();
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "loader: sample 13: unlucky");
      EXPECT_THROW(std::rethrow_if_nested(error), std::domain_error) << "the original is kept";
    }
    loader.start(0, 5);
    EXPECT_EQ(error_text([&] { loader.next(); }), "loader: sample 21: an exception without a text");
    EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("expected start(epoch) before next()"));
    loader.start(0, 6);
    EXPECT_EQ(loader.next()->count, 4) << "and goes on from another place";
  }
}

TEST(OwnDataset, AFailureOnTheDeviceEndsTheEpoch) {
  Collation collation = rows_of({Tensor::zeros({4})});
  collation.on_device = [](const std::vector<Tensor>& rows) {
    WEFT_CHECK(rows.at(0).size(0) == 3, "no room");
    return rows;
  };
  BatchQueue loader(collation, Sampler(4), {.batch_size = 2});
  loader.start(0);
  EXPECT_EQ(error_text([&] { loader.next(); }), "no room");
  EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("expected start(epoch) before next()"));
}

}  // namespace weft::data::testing
