// SPDX-License-Identifier: Apache-2.0
// A data set of a user's own: any type with size() and get(), any struct as its sample.
#include "data/loader.h"
#include "tests/data/fixture.h"
#include "tests/support/devices.h"

namespace weft::data::testing {

struct Readings {
  Tensor trace, depth, kind;
  int64_t count, epoch, step;
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
        }
      EXPECT_EQ(position, 10);
    }
}

TEST(OwnDataset, NeedsACollateFunctionWhereSizesDiffer) {
  const auto growing = std::make_shared<const Wells>(Wells{.grows = 1});
  const Sampler order(10, {.shuffle = false});
  Loader stacked(growing, order, {.batch_size = 4});
  stacked.start(0);
  EXPECT_THAT(error_text([&] { stacked.next(); }), HasSubstr("expected 'trace' f32[3] in all samples, got f32[4]"));
  const Device device{tests::test_devices().back(), 0};
  Loader<Reading> collated(growing, order, {.batch_size = 2, .device = device}, [](const auto& all) {
    return std::vector<Tensor>(3, Tensor::from(std::vector{all[0].trace.numel(), all[1].trace.numel()}));
  });
  collated.start(0, 1);
  EXPECT_EQ(collated.next()->trace.to_vector<int64_t>(), (std::vector<int64_t>{5, 6}));
}

}  // namespace weft::data::testing
