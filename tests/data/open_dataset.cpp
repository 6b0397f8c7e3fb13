// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.h"
#include "data/random_images.h"
#include "data/shapes.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

TEST(OpenDataset, OpensEveryKind) {
  EXPECT_THAT(open_dataset("random:6x4x5x3", Split::train)->describe(), HasSubstr("random train: 6 images 4x5x3"));
  const TemporaryFolder folder;
  write_shapes(folder.path(), {.train = 10, .val = 5});
  EXPECT_EQ(open_dataset("shapes:" + folder.path().string(), Split::val)->size(), 5);
  EXPECT_EQ(open_dataset("cifar10:" + folder.path().string(), Split::train)->size(), 10);
  for (const char* kind : {"cifar100", "cifar100-coarse", "idx", "folder"})
    EXPECT_THAT(error_text([&] { open_dataset(str(kind, ":", folder.path().string()), Split::train); }),
                HasSubstr(std::string(kind) + ": expected"));
}

TEST(OpenDataset, SuggestsTheNearestKind) {
  const std::string text = error_text([] { open_dataset("cifar:x", Split::train); });
  EXPECT_THAT(text, HasSubstr("unknown kind 'cifar'. Did you mean 'cifar10'?"));
  EXPECT_THAT(error_text([] { open_dataset("shaps", Split::train); }), HasSubstr("Did you mean 'shapes'?"));
  const TemporaryFolder folder;
  const std::string photos = folder.path().string();
  EXPECT_THAT(error_text([&] { open_dataset(photos, Split::train); }),
              HasSubstr("expected a kind before the path: folder:" + photos));
  EXPECT_THAT(error_text([] { open_dataset("folder", Split::train); }), HasSubstr("expected folder:DIR, got 'folder'"));
  EXPECT_THAT(error_text([] { open_dataset("packed", Split::train); }), HasSubstr("expected packed:FILE, got"));
}

TEST(RandomImages, ReadsSizesAndRefusesOthers) {
  const RandomImagesOptions options = parse_random_images("12x224x200x1");
  EXPECT_EQ(options.count, 12);
  EXPECT_EQ(options.width, 200);
  EXPECT_EQ(options.channels, 1);
  for (const char* text : {"12", "12x3", "1x2x3x4x5", "ax2x3x4", "1x2x3x", "1x2x3x4 "})
    EXPECT_THAT(error_text([&] { parse_random_images(text); }), HasSubstr("expected NxHxWxC")) << text;
  EXPECT_THAT(error_text([] { open_dataset("random:0x2x2x3", Split::train); }), HasSubstr("sizes of at least 1"));
  EXPECT_THAT(error_text([] { open_dataset("random:2x2x2x5", Split::train); }), HasSubstr("at most 4 channels"));
  EXPECT_THAT(error_text([] { open_dataset("random:9000000000000x99999x99999x3", Split::train); }),
              HasSubstr("at most 64 GiB"));
}

TEST(RandomImages, AreUniformAndDifferByPart) {
  const auto train = random_images({.count = 200}, Split::train), val = random_images({.count = 200}, Split::val);
  EXPECT_NE(train->get(0).pixels, val->get(0).pixels);
  EXPECT_EQ(random_images({.count = 200}, Split::train)->get(7).pixels, train->get(7).pixels);
  double sum = 0;
  const int64_t bytes = train->size() * train->storage()->image_bytes();
  for (int64_t i = 0; i < bytes; ++i) sum += train->storage()->pixels[i];
  EXPECT_NEAR(sum / static_cast<double>(bytes), 127.5, 6 * 73.9 / std::sqrt(static_cast<double>(bytes)));
}

}  // namespace
}  // namespace weft::data::testing
