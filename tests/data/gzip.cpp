// SPDX-License-Identifier: Apache-2.0
// gunzip with zlib; no_gzip.cpp holds the tests of a build without it.
#include <zlib.h>

#include "data/idx.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

std::vector<uint8_t> packed(const std::vector<uint8_t>& bytes) {
  const TemporaryFolder folder;
  const std::string path = (folder / "x.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_file(path);
}

TEST(Idx, ReadsPackedFiles) {
  const TemporaryFolder folder;
  const std::vector<uint8_t> images = idx_bytes({5, 4, 3}), labels = idx_bytes({5}, 9);
  write_file(folder / "train-images-idx3-ubyte", images);
  write_file(folder / "train-labels-idx1-ubyte.gz", packed(labels));
  const auto set = idx(folder.path(), Split::train);
  ASSERT_EQ(set->size(), 5);
  EXPECT_EQ(set->get(2).label, labels[8 + 2]);
}

// A packed byte may stand for a thousand: no more is unpacked than the header promises and the images are.
TEST(Idx, APackedFileCannotGrowBeyondItsHeader) {
  const TemporaryFolder folder;
  std::vector<uint8_t> images = idx_bytes({5, 4, 3}), labels = idx_bytes({5}, 9);
  images.resize(images.size() + (size_t{64} << 20));
  write_file(folder / "train-images-idx3-ubyte.gz", packed(images));
  write_file(folder / "train-labels-idx1-ubyte.gz", packed(labels));
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::train); }),
              HasSubstr("is oversized: its header promises 60 bytes of data, got more"));
  // The header of the labels promises what no images are for: it is refused before anything is unpacked.
  write_file(folder / "train-images-idx3-ubyte", idx_bytes({5, 4, 3}));
  fs::remove(folder / "train-images-idx3-ubyte.gz");
  std::vector<uint8_t> many{0, 0, 8, 1, 0x40, 0, 0, 0};
  many.resize(size_t{16} << 20);
  write_file(folder / "train-labels-idx1-ubyte.gz", packed(many));
  EXPECT_THAT(error_text([&] { idx(folder.path(), Split::train); }),
              HasSubstr("expected as many labels as images, got 1073741824"));
}

TEST(Gunzip, StopsAtTheLimit) {
  const std::vector<uint8_t> bytes = random_bytes(700'000);
  EXPECT_EQ(gunzip(packed(bytes), "x.gz", 300'000), std::vector<uint8_t>(bytes.begin(), bytes.begin() + 300'000));
  EXPECT_EQ(gunzip(packed(bytes), "x.gz", 700'001), bytes);
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

}  // namespace
}  // namespace weft::data::testing
