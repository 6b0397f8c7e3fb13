// SPDX-License-Identifier: Apache-2.0
#include "data/image_loader.h"

#include <atomic>
#include <set>

#include "data/dataset.h"
#include "data/random_images.h"
#include "data/transforms/crop.h"
#include "kernels/runtime/transfer.h"
#include "tests/data/fixture.h"
#include "tests/support/devices.h"
#include "tests/support/still_device.h"

namespace weft::data::testing {
namespace {

std::shared_ptr<const Dataset> some_images(int64_t count) {
  return random_images({.count = count, .height = 6, .width = 5, .seed = std::random_device{}()}, Split::train);
}

struct Seen {
  std::vector<float> images;
  std::vector<int64_t> labels;
  std::vector<int64_t> counts;
  bool operator==(const Seen&) const = default;
};

void append(Seen& seen, const Batch& batch) {
  const std::vector<float> images = batch.images.to_vector<float>();
  const std::vector<int64_t> labels = batch.labels.to_vector<int64_t>();
  seen.images.insert(seen.images.end(), images.begin(), images.end());
  seen.labels.insert(seen.labels.end(), labels.begin(), labels.end());
  seen.counts.push_back(batch.count);
}

Seen epoch_of(ImageLoader& loader, int64_t epoch, int64_t step = 0) {
  Seen seen;
  loader.start(epoch, step);
  while (const auto batch = loader.next()) append(seen, *batch);
  return seen;
}

/// Fails at one image, or hands out images of growing size.
class Awkward : public Dataset {
 public:
  Awkward(std::shared_ptr<const Dataset> inner, int64_t broken) : inner_(std::move(inner)), broken_(broken) {}
  int64_t size() const override { return inner_->size(); }
  const std::vector<std::string>& classes() const override { return inner_->classes(); }
  int64_t channels() const override { return inner_->channels(); }
  Image get(int64_t index) const override {
    ++gets;
    WEFT_CHECK(index < broken_, "awkward: cannot read ", origin(index));
    return inner_->get(index);
  }
  std::string origin(int64_t index) const override { return str("image_", index, ".jpg"); }
  std::string describe() const override { return "awkward"; }
  mutable std::atomic<int64_t> gets{0};

 private:
  std::shared_ptr<const Dataset> inner_;
  int64_t broken_;
};

class VaryingSize : public Awkward {
 public:
  using Awkward::Awkward;
  Image get(int64_t index) const override { return crop(Awkward::get(index), 0, 0, 4 + index, 4); }
};

const ImageLoaderOptions kPlain{
    .batch_size = 4, .workers = 2, .mean = {0.5f, 0.5f, 0.5f}, .std = {0.25f, 0.25f, 0.25f}};

TEST(Loader, BringsEveryImageOnceInTheSamplersOrder) {
  const auto set = some_images(11);
  const Sampler sampler(set->size(), {.seed = 3});
  ImageLoader loader(set, sampler, make_pipeline("none", Split::train), kPlain);
  ASSERT_EQ(loader.steps_per_epoch(), 3);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const Seen seen = epoch_of(loader, epoch);
    EXPECT_EQ(seen.counts, (std::vector<int64_t>{4, 4, 3}));
    ASSERT_EQ(seen.images.size(), 11u * 90u);
    for (int64_t i = 0; i < 11; ++i) {
      const Image image = set->get(sampler.index(epoch, i));
      EXPECT_EQ(seen.labels[i], image.label);
      for (int64_t p = 0; p < 90; ++p)
        ASSERT_FLOAT_EQ(seen.images[i * 90 + p], (static_cast<float>(image.pixels[p]) / 255 - 0.5f) / 0.25f);
    }
  }
  EXPECT_EQ(loader.statistics().batches, 6);
  EXPECT_EQ(loader.statistics().samples, 22);
}

TEST(Loader, IsTheSameForAnyNumberOfWorkers) {
  const auto set = some_images(50);
  for (const char* augment : {"cifar", "imagenet:7"}) {
    const auto seen = [&](int workers, int prefetch) {
      ImageLoaderOptions options = kPlain;
      options.batch_size = 16, options.workers = workers, options.prefetch = prefetch, options.seed = 5;
      ImageLoader loader(set, Sampler(50, {.seed = 5}), make_pipeline(augment, Split::train), options);
      Seen all = epoch_of(loader, 0);
      const Seen second = epoch_of(loader, 1);
      EXPECT_NE(all.images, second.images);
      return all;
    };
    const Seen alone = seen(0, 1);
    EXPECT_EQ(alone.labels.size(), 50u);
    EXPECT_EQ(seen(1, 1), alone) << augment;
    EXPECT_EQ(seen(3, 1), alone) << augment;
    EXPECT_EQ(seen(7, 5), alone) << augment;
  }
}

TEST(Loader, ResumesAtAnyStep) {
  const auto set = some_images(30);
  ImageLoader loader(set, Sampler(30), make_pipeline("cifar", Split::train), kPlain);
  const Seen whole = epoch_of(loader, 4);
  for (int64_t step = 0; step <= loader.steps_per_epoch(); ++step) {
    const Seen rest = epoch_of(loader, 4, step);
    const auto skipped = static_cast<std::ptrdiff_t>(std::min<int64_t>(30, step * 4) * 90);
    EXPECT_EQ(rest.images, std::vector<float>(whole.images.begin() + skipped, whole.images.end()));
  }
  // A new start in the middle of an epoch drops the work under way.
  loader.start(4);
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(epoch_of(loader, 4), whole);
}

TEST(Loader, StartedAheadWorksAheadAndChangesNothing) {
  const auto set = std::make_shared<Awkward>(some_images(40), 40);
  ImageLoaderOptions options = kPlain;
  options.prefetch = 3;
  ImageLoader loader(set, Sampler(40, {.seed = 1}), make_pipeline("cifar", Split::train), options);
  const Seen expected = epoch_of(loader, 1);
  epoch_of(loader, 0);
  const int64_t before = set->gets;
  loader.start(1);
  const int64_t ahead = 4 * (options.prefetch + 1);
  for (int tries = 0; tries < 2000 && set->gets < before + ahead; ++tries) usleep(5000);
  EXPECT_EQ(set->gets, before + ahead);  // the first batches are made before anybody asks
  EXPECT_EQ(epoch_of(loader, 1), expected);
  EXPECT_EQ(set->gets, before + 40);  // and are not made again.
  // A batch that was taken, or another place, starts again.
  loader.start(1);
  loader.next();
  EXPECT_EQ(epoch_of(loader, 1), expected);
  loader.start(0);
  EXPECT_EQ(epoch_of(loader, 1), expected);
  loader.start(1);
  EXPECT_EQ(epoch_of(loader, 1, 9).counts, std::vector<int64_t>{4});
}

TEST(Loader, RanksTogetherSeeTheGlobalBatch) {
  const auto set = some_images(24);
  const auto first_batch = [&](int rank, int world, int64_t batch) {
    ImageLoaderOptions options = kPlain;
    options.batch_size = batch;
    ImageLoader loader(set, Sampler(24, {.rank = rank, .world = world}), make_pipeline("cifar", Split::train), options);
    loader.start(0, 1);
    Seen seen;
    append(seen, *loader.next());
    return seen;
  };
  const Seen global = first_batch(0, 1, 8), even = first_batch(0, 2, 4), odd = first_batch(1, 2, 4);
  for (int64_t i = 0; i < 8; ++i) {
    const Seen& from = i % 2 ? odd : even;
    EXPECT_EQ(global.labels[i], from.labels[i / 2]);
    for (int64_t p = 0; p < 90; ++p) ASSERT_EQ(global.images[i * 90 + p], from.images[i / 2 * 90 + p]);
  }
}

TEST(Loader, DropsTheLastBatchOnRequest) {
  ImageLoaderOptions options = kPlain;
  options.drop_last = true;
  ImageLoader loader(some_images(11), Sampler(11), make_pipeline("none", Split::train), options);
  EXPECT_EQ(loader.steps_per_epoch(), 2);
  EXPECT_EQ(epoch_of(loader, 0).counts, (std::vector<int64_t>{4, 4}));
}

TEST(Loader, GivesImagesAsStored) {
  const auto set = some_images(9);
  ImageLoaderOptions options = kPlain;
  options.dtype = DType::u8;
  const Sampler sampler(9, {.shuffle = false});
  ImageLoader loader(set, sampler, make_pipeline("none", Split::val), options);
  loader.start(0);
  const auto batch = loader.next();
  ASSERT_EQ(batch->images.dtype(), DType::u8);
  EXPECT_EQ(batch->images.sizes(), (Shape{4, 6, 5, 3}));
  EXPECT_TRUE(std::equal(set->storage()->pixels, set->storage()->pixels + 4 * 90, batch->images.data<uint8_t>()));
}

TEST(Loader, NormalisesWithTheSetsOwnStatistics) {
  const auto set = some_images(40);
  ImageLoaderOptions options = kPlain;
  options.mean.clear(), options.std.clear(), options.batch_size = 40;
  ImageLoader loader(set, Sampler(40), make_pipeline("none", Split::train), options);
  const Seen seen = epoch_of(loader, 0);
  double sum = 0, squares = 0;
  for (const float value : seen.images) sum += value, squares += value * value;
  EXPECT_NEAR(sum / 3600, 0, 1e-5);
  EXPECT_NEAR(squares / 3600, 1, 1e-4);
  EXPECT_EQ(loader.options().mean.size(), 3u);
}

TEST(Loader, ThrowsTheWorkersErrorOnceAndStartsAnew) {
  for (const int workers : {0, 1, 4}) {
    ImageLoaderOptions options = kPlain;
    options.workers = workers, options.batch_size = 20;
    const auto set = std::make_shared<Awkward>(some_images(60), 25);
    ImageLoader loader(set, Sampler(60, {.shuffle = false}), make_pipeline("none", Split::train), options);
    for (int round = 0; round < 3; ++round) {
      loader.start(0);
      EXPECT_TRUE(loader.next());
      // Several images of the batch are broken: the first is named, whichever worker was faster.
      EXPECT_EQ(error_text([&] { loader.next(); }), "loader: sample 25: awkward: cannot read image_25.jpg");
      EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("expected start(epoch) before next()"));
    }
  }
}

TEST(Loader, RefusesImagesOfSeveralSizes) {
  const auto set = std::make_shared<VaryingSize>(some_images(8), 100);
  ImageLoader loader(set, Sampler(8, {.shuffle = false}), make_pipeline("none", Split::train), kPlain);
  loader.start(0);
  EXPECT_THAT(error_text([&] { loader.next(); }),
              HasSubstr("expected images of one size, 4x4x3, got 5x4x3 from image_1.jpg"));
  ImageLoader fitting(set, Sampler(8), make_pipeline("resize:5", Split::train), kPlain);
  EXPECT_EQ(epoch_of(fitting, 0).counts, (std::vector<int64_t>{4, 4}));
}

TEST(Loader, StopsCleanlyInTheMiddle) {
  const auto set = std::make_shared<Awkward>(some_images(200), 1000);
  for (int round = 0; round < 20; ++round) {
    ImageLoader loader(set, Sampler(200), make_pipeline("imagenet:9", Split::train), kPlain);
    if (round % 3 > 0) loader.start(round);
    if (round % 3 > 1) {
      EXPECT_TRUE(loader.next());
    }
  }
  const int64_t before = set->gets;
  ImageLoaderOptions options = kPlain;
  options.prefetch = 3;
  {
    ImageLoader loader(set, Sampler(200), make_pipeline("flip", Split::train), options);
    loader.start(0);
    ASSERT_TRUE(loader.next());
  }
  EXPECT_LE(set->gets - before, 1 + 6 * 4) << "no more than the prefetched batches are made";
}

TEST(Loader, RefusesWhatMakesNoSense) {
  const auto set = some_images(10);
  const auto text = [&](auto change) {
    ImageLoaderOptions options = kPlain;
    change(options);
    return error_text([&] { ImageLoader(set, Sampler(10), make_pipeline("none", Split::train), options); });
  };
  EXPECT_THAT(text([](auto& o) { o.batch_size = 0; }), HasSubstr("a batch size of at least 1, got 0"));
  EXPECT_THAT(text([](auto& o) { o.batch_size = 11; }),
              HasSubstr("a batch size of at most 10, the number of images of this rank, got 11"));
  EXPECT_THAT(text([](auto& o) { o.workers = -1; }), HasSubstr("at least 0 workers"));
  EXPECT_THAT(text([](auto& o) { o.prefetch = 0; }), HasSubstr("1 batch of prefetch, got 2 and 0"));
  EXPECT_THAT(text([](auto& o) { o.dtype = DType::i64; }), HasSubstr("f32, f64, bf16 or u8, got i64"));
  EXPECT_THAT(text([](auto& o) { o.dtype = DType::bf16, o.transform_on = TransformOn::host; }),
              HasSubstr("expected f32 of images that are normalised on the host, got bf16"));
  EXPECT_THAT(text([](auto& o) { o.std.pop_back(); }), HasSubstr("mean and std of the same length, got 3 and 2"));
  EXPECT_THAT(text([](auto& o) { o.mean = {0.f}, o.std = {1.f}; }), HasSubstr("mean and std of 3 channels, got 1"));
  EXPECT_THAT(text([](auto& o) { o.mean[1] = 116.5f; }),
              HasSubstr("means from 0 to 1, where white is 1, got 116.5 for channel 1. Divide those of bytes by 255"));
  EXPECT_THAT(text([](auto& o) { o.std[1] = 0; }), HasSubstr("a positive std, got 0 for channel 1"));
  ImageLoader loader(set, Sampler(10), make_pipeline("none", Split::train), kPlain);
  EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("expected start(epoch) before next()"));
  EXPECT_THAT(error_text([&] { loader.start(0, 4); }), HasSubstr("a step from 0 to 3, got epoch 0 step 4"));
  EXPECT_THAT(error_text([&] { loader.start(-1); }), HasSubstr("an epoch of at least 0, got -1"));
  loader.start(0, 3);
  EXPECT_FALSE(loader.next());
  EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("expected start(epoch) before next(): epoch 0 ended"));
  EXPECT_THAT(text([](auto& o) { o.workers = 5000; }), HasSubstr("at most 1024 workers, got 5000"));
  for (const int64_t size : {8, 12})
    EXPECT_THAT(error_text([&] { ImageLoader(set, Sampler(size), make_pipeline("none", Split::train), kPlain); }),
                HasSubstr(str("expected a sampler of the set's 10 samples, got one of ", size, " for ")));
}

/// Windows of another size than the set's images have, which no pipeline with a name cuts from a set in memory. All
/// reach out of the image on both sides, some below.
Pipeline windows() {
  return {.name = "windows", .height = 4, .width = 7, .prepare = {}, .place = [](Draw& draw) {
            return Place{static_cast<int32_t>(draw.below(5)), -1, static_cast<int32_t>(draw.below(2))};
          }};
}

/// The batch on another device, or in another dtype, equals the fused CPU path's.
void expect_same_as_cpu(Device device, DType dtype, double tolerance) {
  const auto set = some_images(22);
  for (const Pipeline& pipeline :
       {make_pipeline("cifar", Split::train), make_pipeline("imagenet:8", Split::train), windows()}) {
    ImageLoaderOptions options = kPlain;
    ImageLoader reference(set, Sampler(22), pipeline, options);
    const Seen expected = epoch_of(reference, 1);
    for (const TransformOn where : {TransformOn::automatic, TransformOn::host, TransformOn::device}) {
      if (where == TransformOn::host && dtype != DType::f32) continue;
      options.device = device, options.dtype = dtype, options.transform_on = where;
      ImageLoader loader(set, Sampler(22), pipeline, options);
      const Seen got = epoch_of(loader, 1);
      EXPECT_EQ(got.labels, expected.labels);
      ASSERT_EQ(got.images.size(), expected.images.size());
      for (size_t i = 0; i < got.images.size(); ++i)
        ASSERT_NEAR(got.images[i], expected.images[i], tolerance) << pipeline.name << ' ' << static_cast<int>(where);
    }
  }
}

// Values lie in [-2, 2]: half a step of the dtype there, and a few roundings of f32.
TEST(Loader, BfloatOnTheCpu) { expect_same_as_cpu({}, DType::bf16, 2.0 / 256); }
TEST(Loader, DoubleOnTheCpu) { expect_same_as_cpu({}, DType::f64, 1e-6); }
TEST(Loader, FloatOnTheCpuIsTheSameBitsWhicheverWay) { expect_same_as_cpu({}, DType::f32, 0); }

TEST(LoaderOnGpu, EqualsTheCpu) {
  if (!tests::runs_on(DeviceKind::cuda)) GTEST_SKIP() << "needs a GPU";
  expect_same_as_cpu({DeviceKind::cuda, 0}, DType::f32, 0);
}

// The host runs ahead of the GPU: here no step has begun before all batches were uploaded.
TEST(LoaderOnAStillGpu, NoBatchIsOverwrittenWhileAStepReadsIt) {
  const tests::StillGpu still;
  const auto set = some_images(60);
  ImageLoaderOptions options = kPlain;
  ImageLoader reference(set, Sampler(60), make_pipeline("cifar", Split::train), options);
  const Seen expected = epoch_of(reference, 0);
  options.device = still.device, options.transform_on = TransformOn::host;
  ImageLoader loader(set, Sampler(60), make_pipeline("cifar", Split::train), options);
  Seen seen{std::vector<float>(expected.images.size()), std::vector<int64_t>(expected.labels.size()), {}};
  const auto step = [&](const Tensor& from, void* to) {
    kernels::transfer(from.queue(), "step", to, from.raw_data(), from.nbytes());
  };
  loader.start(0);
  size_t image = 0, label = 0;
  while (const auto batch = loader.next()) {
    step(batch->images, &seen.images[image]);
    step(batch->labels, &seen.labels[label]);
    image += static_cast<size_t>(batch->images.numel()), label += static_cast<size_t>(batch->count);
    seen.counts.push_back(batch->count);
  }
  still.gpu.synchronize_device(0);
  EXPECT_EQ(seen.labels, expected.labels);
  EXPECT_TRUE(seen.images == expected.images);
  EXPECT_EQ(seen.counts, expected.counts);
}

TEST(LoaderOnAStillGpu, GoesWithoutAnErrorWhenTheDeviceHasFailed) {
  const tests::StillGpu still;
  ImageLoaderOptions options = kPlain;
  options.device = still.device, options.transform_on = TransformOn::host;
  {
    ImageLoader loader(some_images(20), Sampler(20), make_pipeline("none", Split::val), options);
    loader.start(0);
    const auto batch = loader.next();
    still.gpu.failure = "an illegal memory access was encountered";
    EXPECT_THAT(error_text([&] { loader.next(); }), HasSubstr("an illegal memory access"));
  }  // destructors run while the error is under way: one that throws would end the process
  still.gpu.failure.clear();
}

}  // namespace
}  // namespace weft::data::testing
