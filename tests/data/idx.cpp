// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <zlib.h>

#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

std::vector<uint8_t> idx_bytes(const std::vector<uint32_t>& sizes, int largest = 255) {
  std::vector<uint8_t> bytes{0, 0, 8, static_cast<uint8_t>(sizes.size())};
  size_t elements = 1;
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(size >> shift));
    elements *= size;
  }
  const std::vector<uint8_t> body = random_bytes(elements, largest);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

std::vector<uint8_t> packed(const std::vector<uint8_t>& bytes) {
  const TemporaryFolder folder;
  const std::string path = (folder / "x.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_file(path);
}

TEST(Idx, ReadsPlainAndPackedFiles) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> images = idx_bytes({5, 4, 3}), labels = idx_bytes({5}, 9);
  write_file(folder / "train-images-idx3-ubyte", images);
  write_file(folder / "train-labels-idx1-ubyte.gz", packed(labels));
  const auto set = idx(folder.path(), Split::train);
  ASSERT_EQ(set->size(), 5);
  EXPECT_EQ(set->classes().size(), 10u);
  EXPECT_EQ(set->channels(), 1);
  const Picture picture = set->get(2);
  EXPECT_EQ(picture.height, 4);
  EXPECT_EQ(picture.width, 3);
  EXPECT_EQ(picture.label, labels[8 + 2]);
  EXPECT_TRUE(std::equal(picture.pixels.begin(), picture.pixels.end(), images.begin() + 16 + 2 * 12));
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::val); }),
              HasSubstr("one of t10k-images-idx3-ubyte, t10k-images-idx3-ubyte.gz"));
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
  broken = images;
  broken[2] = 13;
  EXPECT_THAT(text(broken, labels), HasSubstr("expected unsigned bytes (type 8)"));
  broken[2] = 8, broken[3] = 9;
  EXPECT_THAT(text(broken, labels), HasSubstr("1 to 4 dimensions"));
  EXPECT_THAT(text({0, 0}, labels), HasSubstr("expected a header, got 2 bytes"));
  EXPECT_THAT(text({0, 0, 8, 3, 0}, labels), HasSubstr("expected a header of 16 bytes, got 5"));
  EXPECT_THAT(text(images, idx_bytes({4})), HasSubstr("got 4 in"));
  EXPECT_THAT(text(labels, labels), HasSubstr("expected pictures [n, h, w]"));
  EXPECT_THAT(text(images, images), HasSubstr("one dimension of labels"));
  EXPECT_THAT(text(idx_bytes({0, 4, 3}), idx_bytes({0})), HasSubstr("expected at least one picture"));
  broken = images;
  for (int i = 4; i < 16; ++i) broken[i] = 0xff;
  EXPECT_THAT(text(broken, labels), HasSubstr("promises more than 2^48 bytes"));
}

TEST(Gunzip, UnpacksMembersInARow) {
  const std::vector<uint8_t> first = random_bytes(70000), second = random_bytes(1000);
  std::vector<uint8_t> both = packed(first);
  const std::vector<uint8_t> more = packed(second);
  both.insert(both.end(), more.begin(), more.end());
  std::vector<uint8_t> expected = first;
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(gunzip(both, "x.gz"), expected);
}

TEST(Gunzip, RefusesBrokenFiles) {
  std::vector<uint8_t> bytes = packed(random_bytes(5000));
  std::vector<uint8_t> broken = bytes;
  broken.resize(bytes.size() / 2);
  EXPECT_THAT(error_text([&] { gunzip(broken, "x.gz"); }), HasSubstr("x.gz is cut short after"));
  broken = bytes;
  broken[bytes.size() - 6] ^= 0x40;  // the checksum
  EXPECT_THAT(error_text([&] { gunzip(broken, "x.gz"); }), HasSubstr("x.gz is corrupt at byte"));
  EXPECT_THAT(error_text([&] { gunzip({1, 2, 3}, "x.gz"); }), HasSubstr("x.gz is not gzip"));
}

TEST(Idx, ReadsFashionMnist) {
  const fs::path folder = shared_data("fashion-mnist");
  WEFT_NEED_SHARED_DATA(folder);
  const auto set = idx(folder, Split::val);
  ASSERT_EQ(set->size(), 10000);
  std::vector<int64_t> counts(10);
  for (int64_t i = 0; i < set->size(); ++i) ++counts[set->storage()->labels[i]];
  EXPECT_EQ(counts, std::vector<int64_t>(10, 1000));
}

}  // namespace
}  // namespace weft::data::testing
