// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"

#include <cmath>

#include "data/cifar.h"
#include "data/image_folder.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

FixedDataset::Contents random_contents(int64_t count) {
  FixedDataset::Contents contents;
  contents.title = "test";
  contents.height = 5, contents.width = 4, contents.channels = 3;
  contents.pixels = random_bytes(count * 60);
  contents.labels.assign(count, 0);
  contents.classes = {"one"};
  return contents;
}

TEST(ChannelStatistics, EqualTwoPassesInDouble) {
  const FixedDataset::Contents contents = random_contents(1300);
  const FixedDataset set(contents);
  const ChannelStatistics& got = channel_statistics(set, 3);
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (size_t i = c; i < contents.pixels.size(); i += 3) sum += contents.pixels[i] / 255.0;
    const double mean = sum / (1300 * 20);
    for (size_t i = c; i < contents.pixels.size(); i += 3) squares += std::pow(contents.pixels[i] / 255.0 - mean, 2);
    EXPECT_NEAR(got.mean[c], mean, 1e-12);
    EXPECT_NEAR(got.std[c], std::sqrt(squares / (1300 * 20)), 1e-12);
  }
  EXPECT_EQ(&channel_statistics(set, 1), &got) << "computed once";
  EXPECT_EQ(channel_statistics(FixedDataset(contents), 1).mean, got.mean) << "the same for any number of threads";
}

TEST(ChannelStatistics, AConstantChannelGetsStdOne) {
  FixedDataset::Contents contents = random_contents(3);
  std::fill(contents.pixels.begin(), contents.pixels.end(), uint8_t{51});
  const FixedDataset set(contents);
  EXPECT_NEAR(channel_statistics(set).mean[1], 0.2, 1e-12);
  EXPECT_EQ(channel_statistics(set).std[1], 1);
}

TEST(FixedDataset, RefusesWhatDoesNotFit) {
  FixedDataset::Contents contents = random_contents(3);
  contents.labels[2] = 1;
  EXPECT_THAT(error_text([&] { FixedDataset set(contents); }),
              HasSubstr("expected labels 0 to 0, got 1 in test image 2"));
  contents.labels = {0, 0};
  EXPECT_THAT(error_text([&] { FixedDataset set(contents); }), HasSubstr("expected 2 images of 5x4x3, got 180 bytes"));
  const FixedDataset set(random_contents(3));
  EXPECT_THAT(error_text([&] { set.get(3); }), HasSubstr("an index below 3, got 3"));
  EXPECT_THAT(error_text([&] { set.get(-1); }), HasSubstr("got -1"));
}

TEST(ChannelStatistics, OfCifar100AreThePublishedOnes) {
  // The subset of the first 200 of every class is close to the whole set: 0.507, 0.487, 0.441 / 0.267, 0.256,
  // 0.276.
  const char* unpacked = std::getenv("WEFT_CIFAR100");
  const fs::path folder = unpacked != nullptr ? fs::path(unpacked) : shared_data("cifar-100-binary");
  const fs::path packed = folder / "test.bin.xz";
  const TemporaryFolder work;
  fs::path place = folder;
  if (!fs::exists(folder / "test.bin")) {
    WEFT_NEED_SHARED_DATA(packed);
    const std::string command = str("xz -dkc '", packed.string(), "' > '", (work / "test.bin").string(), "'");
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "needs xz (apt-get install xz-utils) to unpack " << packed;
    place = work.path();
  }
  const auto set = cifar100(place, Split::val);
  EXPECT_EQ(set->size(), 4000);
  const ChannelStatistics& got = channel_statistics(*set);
  const std::vector<double> mean{0.507, 0.487, 0.441}, std{0.267, 0.256, 0.276};
  for (size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(got.mean[c], mean[c], 0.01);
    EXPECT_NEAR(got.std[c], std[c], 0.01);
  }
}

TEST(ChannelStatistics, OfAFolderWeighEveryImageEqually) {
  WEFT_NEED_PART(JPEG, "libjpeg-turbo");
  WEFT_NEED_PART(SPNG, "libspng");
  const TemporaryFolder folder;
  fs::create_directories(folder / "train/a");
  fs::copy_file(golden("rgb.png"), folder / "train/a/1.png");
  fs::copy_file(golden("baseline.jpg"), folder / "train/a/2.jpg");
  const auto set = image_folder(folder.path(), Split::train);
  double mean = 0;
  for (int64_t i = 0; i < 2; ++i) {
    const Image image = set->get(i);
    double sum = 0;
    for (size_t p = 0; p < image.pixels.size(); p += 3) sum += image.pixels[p];
    mean += sum / 255 / static_cast<double>(image.pixels.size() / 3) / 2;
  }
  EXPECT_NEAR(channel_statistics(*set).mean[0], mean, 1e-9);
}

}  // namespace
}  // namespace weft::data::testing
