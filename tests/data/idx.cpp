// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

TEST(Idx, ReadsImages) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> images = idx_bytes({5, 4, 3}), labels = idx_bytes({5}, 9);
  write_file(folder / "train-images-idx3-ubyte", images);
  write_file(folder / "train-labels-idx1-ubyte", labels);
  const auto set = idx(folder.path(), Split::train);
  ASSERT_EQ(set->size(), 5);
  EXPECT_EQ(set->classes().size(), 10u);
  EXPECT_EQ(set->channels(), 1);
  const Image image = set->get(2);
  EXPECT_EQ(image.height, 4);
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.label, labels[8 + 2]);
  EXPECT_TRUE(std::equal(image.pixels.begin(), image.pixels.end(), images.begin() + 16 + 2 * 12));
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::val); }),
              HasSubstr("one of t10k-images-idx3-ubyte, t10k-images-idx3-ubyte.gz"));
}

TEST(Idx, ClassesAreThoseOfBothParts) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& part, std::vector<uint8_t> labels) {
    write_file(folder / (part + "-images-idx3-ubyte"), idx_bytes({static_cast<uint32_t>(labels.size()), 4, 3}));
    std::vector<uint8_t> file = idx_bytes({static_cast<uint32_t>(labels.size())});
    std::copy(labels.begin(), labels.end(), file.end() - static_cast<std::ptrdiff_t>(labels.size()));
    write_file(folder / (part + "-labels-idx1-ubyte"), file);
  };
  write("train", {0, 11, 3});
  EXPECT_EQ(idx(folder.path(), Split::train)->classes().size(), 12u) << "no other part";
  write("t10k", {1, 10});
  for (const Split split : {Split::train, Split::val})
    EXPECT_EQ(idx(folder.path(), split)->classes().size(), 12u) << "no image of the test part is of class 11";
  EXPECT_EQ(idx(folder.path(), Split::val)->classes()[11], "11");
  write("t10k", {1, 26});  // EMNIST's letters are numbered from 1
  for (const Split split : {Split::train, Split::val}) EXPECT_EQ(idx(folder.path(), split)->classes().size(), 27u);
  write_file(folder / "t10k-labels-idx1-ubyte", idx_bytes({2, 2}));
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::train); }), HasSubstr("one dimension of labels"));
}

TEST(Idx, NamesOfOtherSetsAreShown) {
  const TemporaryFolder folder;
  write_file(folder / "emnist-letters-train-images-idx3-ubyte.gz", {1});
  EXPECT_THAT(
      error_text([&] { idx(folder.path(), Split::train); }),
      HasSubstr("got none of them. There are: emnist-letters-train-images-idx3-ubyte.gz. Link or rename those of "
                "one set"));
}

TEST(Idx, FoldersOfTorchvisionAreNamed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "MNIST/raw");
  write_file(folder / "MNIST/raw/train-images-idx3-ubyte", {1});
  for (const char* above : {"", "MNIST"})
    EXPECT_THAT(error_text([&] { idx(folder / above, Split::train); }),
                HasSubstr("it is in " + (folder / "MNIST/raw").string() + ": name that folder"));
}

TEST(Idx, TheContentSaysWhetherItIsPacked) {
  const TemporaryFolder folder;
  write_file(folder / "train-images-idx3-ubyte.gz", idx_bytes({2, 4, 3}));  // unpacked on the way
  write_file(folder / "train-labels-idx1-ubyte", idx_bytes({2}, 9));
  EXPECT_EQ(idx(folder.path(), Split::train)->size(), 2);
}

TEST(Idx, RefusesBrokenFiles) {
  const TemporaryFolder folder;
  const auto text = [&](const std::vector<uint8_t>& images, const std::vector<uint8_t>& labels) {
    write_file(folder / "t10k-images-idx3-ubyte", images);
    write_file(folder / "t10k-labels-idx1-ubyte", labels);
    return error_text([&] { idx(folder.path(), Split::val); });
  };
  const std::vector<uint8_t> images = idx_bytes({5, 4, 3}), labels = idx_bytes({5});
  std::vector<uint8_t> broken = images;
  broken.pop_back();
  EXPECT_THAT(text(broken, labels), HasSubstr("is truncated: its header promises 60 bytes of data, got 59"));
  broken.resize(images.size() + 2);
  EXPECT_THAT(text(broken, labels), HasSubstr("is oversized: its header promises 60 bytes of data, got 62"));
  broken = images;
  broken[0] = 0x89;
  EXPECT_THAT(text(broken, labels), HasSubstr("got the magic number 0x89000803"));
  const std::string page = "<!DOCTYPE html><title>Log in</title>";
  EXPECT_EQ(text({page.begin(), page.end()}, labels),
            "idx: " + (folder / "t10k-images-idx3-ubyte").string() +
                ": it is a web page (HTML), expected an IDX file. Its server has answered with a page, such as a login "
                "or an error. Download the file again");
  broken = images;
  broken[2] = 13;
  EXPECT_THAT(text(broken, labels), HasSubstr("expected unsigned bytes (type 8)"));
  broken[2] = 8, broken[3] = 9;
  EXPECT_THAT(text(broken, labels), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(text({0, 0}, labels), HasSubstr("expected a header, got 2 bytes"));
  EXPECT_THAT(text({0, 0, 8, 3, 0}, labels), HasSubstr("expected a header of 16 bytes, got 5"));
  EXPECT_THAT(text(images, idx_bytes({4})), HasSubstr("got 4 in"));
  EXPECT_THAT(text(labels, labels), HasSubstr("expected images [n, h, w]"));
  EXPECT_THAT(text(images, images), HasSubstr("one dimension of labels"));
  EXPECT_THAT(text(idx_bytes({0, 4, 3}), idx_bytes({0})), HasSubstr("expected at least one image"));
  broken = images;
  for (int i = 4; i < 16; ++i) broken[i] = 0xff;
  EXPECT_THAT(text(broken, labels), HasSubstr("expected at most 17179869184 bytes of data, its header promises more"));
}

TEST(Idx, ReadsFashionMnist) {
  const fs::path folder = shared_data("fashion-mnist");
  WEFT_NEED_SHARED_DATA(folder);
  WEFT_NEED_PART(ZLIB, "zlib");
  const auto set = idx(folder, Split::val);
  ASSERT_EQ(set->size(), 10000);
  std::vector<int64_t> counts(10);
  for (int64_t i = 0; i < set->size(); ++i) ++counts[set->storage()->labels[i]];
  EXPECT_EQ(counts, std::vector<int64_t>(10, 1000));
}

}  // namespace
}  // namespace weft::data::testing
