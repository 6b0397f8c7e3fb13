// SPDX-License-Identifier: Apache-2.0
// HDF5 fields: files, years as pairs of times, batches.
#include <fstream>
#include <numeric>

#include "data/field_series.h"
#include "kernels/runtime/transfer.h"
#include "tests/data/fixture.h"
#include "tests/support/devices.h"
#include "tests/support/error_text.h"
#include "tests/support/still_device.h"

namespace weft::data::testing {
namespace {

float value_at(int64_t year, int64_t time, int64_t channel, int64_t row, int64_t column) {
  return static_cast<float>(year * 10000 + time * 1000 + channel * 100 + row * 10 + column);
}

void write_year(const fs::path& path, int64_t year, const FieldSize& size) {
  write_fields(path, size, [&](int64_t time, float* values) {
    for (int64_t c = 0; c < size.channels; ++c)
      for (int64_t h = 0; h < size.rows; ++h)
        for (int64_t w = 0; w < size.columns; ++w) *values++ = value_at(year, time, c, h, w);
  });
}

class Fields : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have_fields()) GTEST_SKIP() << "this build has no HDF5";
    write_year(folder_ / "1979.h5", 1, {4, 3, 3, 5});
    write_year(folder_ / "1980.h5", 2, {3, 3, 3, 5});
    std::ofstream(folder_ / "README") << "no year";
  }
  FieldSeriesOptions options() const {
    return {
        .dt = 1, .in_channels = 3, .out_channels = 2, .rows = 2, .columns = 4, .means = {1, 2, 3}, .stds = {2, 4, 8}};
  }
  TemporaryFolder folder_;
};

TEST_F(Fields, FilesAreReadThroughAWindow) {
  const auto file = open_fields(folder_ / "1979.h5");
  EXPECT_EQ(file->size().times, 4);
  EXPECT_EQ(file->size().values(), 3 * 3 * 5);
  for (const FieldSize& window :
       {FieldSize{1, 3, 3, 5}, FieldSize{1, 2, 2, 5}, FieldSize{1, 2, 3, 4}, FieldSize{1, 1, 1, 1}}) {
    std::vector<float> values(static_cast<size_t>(window.values()));
    file->read(2, window, values.data());
    size_t i = 0;
    for (int64_t c = 0; c < window.channels; ++c)
      for (int64_t h = 0; h < window.rows; ++h)
        for (int64_t w = 0; w < window.columns; ++w) EXPECT_EQ(values[i++], value_at(1, 2, c, h, w));
  }
  std::vector<float> values(1000);
  EXPECT_THAT(error_text([&] {
                file->read(4, {1, 1, 1, 1}, values.data());
              }),
              HasSubstr("time 4 of 1 x 1 x 1 values lies outside"));
  EXPECT_THAT(error_text([&] {
                file->read(0, {1, 4, 1, 1}, values.data());
              }),
              HasSubstr("lies outside of 4 x 3 x 3 x 5"));
}

// tests/golden/hdf5_of_others.py: 0, 1, 2, … of [2, 2, 2, 3]
TEST_F(Fields, FilesOfH5py) {
  const fs::path golden = fs::path(WEFT_GOLDEN) / "hdf5";
  for (const char* name : {"gzip", "big_endian", "half", "link", "latest"}) {
    SCOPED_TRACE(name);
    const auto file = open_fields(golden / ("fields_" + std::string(name) + ".h5"));
    std::vector<float> values(12), expected(12);
    std::iota(expected.begin(), expected.end(), 12.0f);
    file->read(1, {1, 2, 2, 3}, values.data());
    EXPECT_EQ(values, expected);
  }
  const auto refusal = [&](const char* name) { return error_text([&] { open_fields(golden / name); }); };
  EXPECT_THAT(refusal("fields_lzf.h5"), HasSubstr("fields: packed by lzf (filter 32000), which this libhdf5 does not "
                                                  "have. Name the folder of its plugin in HDF5_PLUGIN_PATH"));
  EXPECT_THAT(refusal("fields_integers.h5"),
              HasSubstr("expected floating point numbers, got another type. Packed whole numbers (scale_factor, "
                        "add_offset) must be unpacked first: write them as float32"));
  EXPECT_THAT(
      refusal("fields_dangling.h5"),
      HasSubstr("expected the dataset 'fields', got none in this file: it is a link that leads nowhere, or lies "
                "in another file (external or virtual). Copy it into this one"));
  EXPECT_THAT(
      refusal("fields_open.h5"),
      HasSubstr("it was not closed by the program that writes it, which still runs or was ended. Wait for it, or "
                "clear the mark: h5clear -s FILE"));
  EXPECT_THAT(refusal("keras.h5"), HasSubstr("expected the dataset 'fields', got none in this file"));
  fs::copy_file(golden / "fields_latest.h5", folder_ / "new.h5");
  {
    std::fstream file(folder_ / "new.h5", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(8);
    file.put('\7');  // the superblock's version
  }
  EXPECT_THAT(error_text([&] { open_fields(folder_ / "new.h5"); }),
              HasSubstr("expected an HDF5 file of superblock version 3 at most, got 7. Install a newer libhdf5"));
}

TEST_F(Fields, PairsNeverCrossAYear) {
  const FieldSeries one(folder_.path(), options());
  EXPECT_EQ(one.size(), 3 + 2);
  EXPECT_THAT(one.describe(), HasSubstr("2 files, 5 pairs of 3 x 2 x 4"));
  std::vector<float> input(2 * 4 * 3), target(2 * 4 * 2);
  const std::vector<std::pair<int64_t, int64_t>> places{{1, 0}, {1, 1}, {1, 2}, {2, 0}, {2, 1}};  // year, time
  for (size_t i = 0; i < places.size(); ++i) {
    one.read(static_cast<int64_t>(i), input.data(), target.data());
    const auto [year, time] = places[i];
    EXPECT_FLOAT_EQ(input[(1 * 4 + 3) * 3 + 2], (value_at(year, time, 2, 1, 3) - 3) / 8) << i;
    EXPECT_FLOAT_EQ(target[(1 * 4 + 2) * 2 + 1], (value_at(year, time + 1, 1, 1, 2) - 2) / 4) << i;
  }
  FieldSeriesOptions two = options();
  two.dt = 2;
  EXPECT_EQ(FieldSeries(folder_.path(), two).size(), 2 + 1);
  two.limit = 2;
  EXPECT_EQ(FieldSeries(folder_.path(), two).size(), 2);
  EXPECT_THAT(error_text([&] { FieldSeries(folder_.path(), two).read(2, nullptr, nullptr); }),
              HasSubstr("expected a pair below 2, got 2"));
}

TEST_F(Fields, BatchesAreTheSameForAnyNumberOfWorkers) {
  for (const DeviceKind kind : tests::test_devices()) {
    const auto series = std::make_shared<const FieldSeries>(folder_.path(), options());
    const Sampler order(series->size(), {.seed = 3});
    std::vector<float> input(2 * 4 * 3), target(2 * 4 * 2);
    for (const int workers : {0, 1, 3}) {
      FieldLoader loader(series, order, {.batch_size = 2, .workers = workers, .drop_last = true, .device = {kind, 0}});
      EXPECT_EQ(loader.steps_per_epoch(), 2);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        loader.start(epoch, epoch == 2 ? 1 : 0);  // the last one from its second batch
        for (int64_t step = epoch == 2 ? 1 : 0; step < 2; ++step) {
          const auto batch = loader.next();
          ASSERT_TRUE(batch);
          EXPECT_EQ(batch->input.sizes(), (Shape{2, 2, 4, 3}));
          EXPECT_EQ(batch->target.device().kind, kind);
          const auto got_input = batch->input.to_vector<float>(), got_target = batch->target.to_vector<float>();
          for (int64_t i = 0; i < 2; ++i) {
            series->read(order.index(epoch, step * 2 + i), input.data(), target.data());
            EXPECT_TRUE(std::equal(input.begin(), input.end(), got_input.begin() + i * 24));
            EXPECT_TRUE(std::equal(target.begin(), target.end(), got_target.begin() + i * 16));
          }
        }
        EXPECT_FALSE(loader.next());
      }
      loader.start(0);  // dropped while threads read
    }
  }
}

TEST_F(Fields, TravelWhileAStepReadsThoseBefore) {
  const tests::StillGpu still;
  const auto series = std::make_shared<const FieldSeries>(folder_.path(), options());
  FieldLoader reference(series, Sampler(5), {.batch_size = 1});
  FieldLoader loader(series, Sampler(5), {.batch_size = 1, .workers = 2, .prefetch = 1, .device = still.device});
  const int64_t pinned = still.gpu.count("allocate_pinned");
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<float> seen(5 * 24), expected;
    reference.start(epoch);
    loader.start(epoch);
    float* to = seen.data();
    while (const auto batch = loader.next()) {
      EXPECT_FALSE(still.gpu.is_idle(nullptr)) << "the host waits for no step";
      kernels::transfer(batch->input.queue(), "step", to, batch->input.raw_data(), batch->input.nbytes());
      to += 24;
      const std::vector<float> one = reference.next()->input.to_vector<float>();
      expected.insert(expected.end(), one.begin(), one.end());
    }
    still.gpu.synchronize_device(0);
    EXPECT_EQ(seen, expected);
  }
  EXPECT_EQ(still.gpu.count("allocate_pinned"), pinned) << "pinned memory is used again";
}

TEST_F(Fields, AFileThatWasCutShortMeanwhileIsAnErrorOfItsBatch) {
  const auto series = std::make_shared<const FieldSeries>(folder_.path(), options());
  fs::resize_file(folder_ / "1980.h5", 2500);
  for (const int workers : {0, 2}) {
    FieldLoader loader(series, Sampler(series->size(), {.shuffle = false}), {.batch_size = 1, .workers = workers});
    loader.start(0);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(loader.next());
    EXPECT_THAT(error_text([&] {
                  loader.next();
                  loader.next();
                }),
                HasSubstr("1980.h5"));
  }
}

TEST_F(Fields, RefusesWithOneLine) {
  const auto refused = [&](FieldSeriesOptions o, const std::string& text) {
    EXPECT_THAT(error_text([&] { FieldSeries(folder_.path(), o); }), HasSubstr(text));
  };
  FieldSeriesOptions o = options();
  o.columns = 6;
  refused(o, "1979.h5: expected at least 3 x 2 x 6 values (channels, rows, columns), got 3 x 3 x 5");
  o = options();
  o.means = {1};
  refused(o, "expected means and standard deviations of 3 channels, got 1 and 3");
  o = options();
  o.stds[1] = 0;
  refused(o, "channel 1: expected a positive standard deviation, got 0");
  o.stds[1] = INFINITY;
  refused(o, "channel 1: expected a positive standard deviation, got inf");
  o = options();
  o.means[2] = NAN;
  refused(o, "channel 2: expected a finite mean, got nan");
  o = options();
  o.dt = 9;
  refused(o, "holds no pair of times 9 apart in one file");
  o.dt = 0;
  refused(o, "expected dt, channels, rows and columns above 0, got 0");
  EXPECT_THAT(error_text([&] { FieldSeries(folder_ / "nowhere", options()); }),
              HasSubstr("expected a folder of HDF5 files at"));
  fs::create_directory(folder_ / "empty");
  EXPECT_THAT(error_text([&] { FieldSeries(folder_ / "empty", options()); }),
              HasSubstr("expected files such as 1979.h5 in"));
  std::ofstream(folder_ / "text.h5") << "no HDF5 at all";
  EXPECT_THAT(error_text([&] { open_fields(folder_ / "text.h5"); }),
              HasSubstr("text.h5: expected an HDF5 file with the dataset 'fields', got another format"));
  fs::remove(folder_ / "text.h5");
  fs::copy_file(folder_ / "1980.h5", folder_ / "half.h5");
  fs::resize_file(folder_ / "half.h5", 2200);
  EXPECT_THAT(error_text([&] { open_fields(folder_ / "half.h5"); }), HasSubstr("half.h5: "));
  fs::remove(folder_ / "half.h5");
  EXPECT_THAT(error_text([&] {
                write_fields(folder_ / "no/such/folder.h5", {1, 1, 1, 1}, [](int64_t, float*) {});
              }),
              HasSubstr("cannot write"));
  const auto series = std::make_shared<const FieldSeries>(folder_.path(), options());
  EXPECT_THAT(error_text([&] { FieldLoader(series, Sampler(6), {.batch_size = 1}); }),
              HasSubstr("expected a sampler of the set's 5 samples, got one of 6"));
  FieldLoader named(series, Sampler(5, {.shuffle = false}), {.batch_size = 2});
  EXPECT_THAT(named.origin(0, 2, 1, {0, 1, 3, 1}), HasSubstr("1980.h5, time "));
  EXPECT_THAT(named.origin(0, 2, 1, {0, 1, 3, 1}), HasSubstr(", channel 1, row 1, column 3)"));
  for (const int64_t index : {-1, 5})
    EXPECT_THAT(error_text([&] { series->read(index, nullptr, nullptr); }),
                HasSubstr(str("a pair below 5, got ", index)));
  EXPECT_THAT(error_text([&] { FieldLoader(series, Sampler(5), {.batch_size = 6, .drop_last = true}); }),
              HasSubstr("expected a batch size of at most 5, the number of samples of this rank, got 6"));
  EXPECT_THAT(error_text([&] { FieldLoader(series, Sampler(5), {.batch_size = 1, .workers = -1}); }),
              HasSubstr("expected at least 0 workers"));
  EXPECT_THAT(error_text([&] { FieldLoader(series, Sampler(5), {.batch_size = 1}).next(); }),
              HasSubstr("expected start(epoch) before next()"));
  EXPECT_THAT(error_text([&] { FieldLoader(series, Sampler(5), {.batch_size = 1}).start(0, 6); }),
              HasSubstr("expected a step from 0 to 5, got epoch 0 step 6"));
}

TEST(FieldsWithoutHdf5, SayHowToGetIt) {
  if (have_fields()) GTEST_SKIP() << "this build has HDF5";
  EXPECT_THAT(error_text([] { open_fields("a.h5"); }), HasSubstr("Install libhdf5-dev"));
}

}  // namespace
}  // namespace weft::data::testing
