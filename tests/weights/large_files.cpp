// SPDX-License-Identifier: Apache-2.0
// Files above 4 GiB with two tensors: 5 GiB of zeros, followed by two numbers. They are sparse: kilobytes on the disk.
#include <fstream>

#include "tests/weights/fixture.h"

namespace weft {
namespace {

using namespace std::string_literals;
using test::TemporaryFolder;

constexpr uint64_t kHole = uint64_t{5} << 30;

/// A number of `bytes` bytes, little-endian.
std::string le(uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i) result += static_cast<char>(value >> (8 * i));
  return result;
}

std::string text(const std::string& word) { return "X" + le(word.size(), 4) + word; }
std::string number(uint64_t value) { return "\x8a\x08"s + le(value, 8); }

std::string tensor(const std::string& storage_class, const std::string& key, uint64_t numel) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + storage_class + "\n" + text(key) +
         text("cpu") + number(numel) + "tQK\0"s + number(numel) + "\x85K\1\x85\x89" + "ccollections\nOrderedDict\n)RtR";
}

/// {"a": u8[5 GiB], "b": f32[2]}
std::string pickle() {
  return "\x80\2}(" + text("a") + tensor("ByteStorage", "0", kHole) + text("b") + tensor("FloatStorage", "1", 2) + "u.";
}

std::string two_floats() {
  const float values[] = {1.5f, -2};
  return {reinterpret_cast<const char*>(values), sizeof values};
}

void write_with_hole(const std::filesystem::path& path, const std::string& before, const std::string& behind) {
  test::write_file(path, before);
  std::filesystem::resize_file(path, before.size() + kHole);
  std::ofstream(path, std::ios::binary | std::ios::app) << behind;
}

void expect_second_tensor(const std::filesystem::path& path) {
  const auto file = open_weights(path);
  EXPECT_EQ(file->tensors().at(0).sizes, (Shape{static_cast<int64_t>(kHole)}));
  EXPECT_EQ(file->read(1).to_vector<float>(), (std::vector<float>{1.5f, -2}));
}

TEST(LargeFiles, LegacyPyTorch) {
  const TemporaryFolder folder;
  const std::string start = "\x80\2\x8a\nl\xfc\x9c"s + "F\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}." + pickle() +
                            "\x80\2](" + text("0") + text("1") + "e.";
  write_with_hole(folder / "a.pt", start + le(kHole, 8), le(2, 8) + two_floats());
  expect_second_tensor(folder / "a.pt");
}

uint32_t crc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// An archive in the zip64 form (PKWARE's APPNOTE, 4.3.14, 4.5.3): sizes and offsets beyond 32 bits are in extra
// fields.
TEST(LargeFiles, Zip64) {
  if (!have_zip()) GTEST_SKIP() << "this build has no libzip";
  constexpr uint64_t kMax = 0xffffffff;
  struct Entry {
    std::string name;
    uint64_t size;
    uint32_t crc;
    uint64_t offset = 0;
  };
  Entry entries[] = {{"x/data.pkl", pickle().size(), crc32(pickle())},
                     {"x/data/0", kHole, 0},  // only a read of it checks its checksum
                     {"x/data/1", 8, crc32(two_floats())}};
  const auto local = [](const Entry& entry) {
    const bool large = entry.size >= kMax;
    const std::string extra = large ? le(1, 2) + le(16, 2) + le(entry.size, 8) + le(entry.size, 8) : "";
    return "PK\3\4" + le(45, 2) + le(0, 2) + le(0, 2) + le(0, 4) + le(entry.crc, 4) + le(large ? kMax : entry.size, 4) +
           le(large ? kMax : entry.size, 4) + le(entry.name.size(), 2) + le(extra.size(), 2) + entry.name + extra;
  };
  std::string before = local(entries[0]) + pickle();
  entries[1].offset = before.size();
  before += local(entries[1]);
  entries[2].offset = before.size() + kHole;
  std::string behind = local(entries[2]) + two_floats();

  const uint64_t directory = before.size() + kHole + behind.size();
  std::string central;
  for (const Entry& entry : entries) {
    const bool large = entry.size >= kMax, far = entry.offset >= kMax;
    std::string extra = large ? le(entry.size, 8) + le(entry.size, 8) : "";
    if (far) extra += le(entry.offset, 8);
    if (!extra.empty()) extra = le(1, 2) + le(extra.size(), 2) + extra;
    central += "PK\1\2" + le(45, 2) + le(45, 2) + le(0, 2) + le(0, 2) + le(0, 4) + le(entry.crc, 4) +
               le(large ? kMax : entry.size, 4) + le(large ? kMax : entry.size, 4) + le(entry.name.size(), 2) +
               le(extra.size(), 2) + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) + le(far ? kMax : entry.offset, 4) +
               entry.name + extra;
  }
  behind += central;
  behind += "PK\6\6" + le(44, 8) + le(45, 2) + le(45, 2) + le(0, 4) + le(0, 4) + le(3, 8) + le(3, 8) +
            le(central.size(), 8) + le(directory, 8);
  behind += "PK\6\7" + le(0, 4) + le(directory + central.size(), 8) + le(1, 4);
  behind += "PK\5\6" + le(0, 2) + le(0, 2) + le(0xffff, 2) + le(0xffff, 2) + le(kMax, 4) + le(kMax, 4) + le(0, 2);

  const TemporaryFolder folder;
  write_with_hole(folder / "a.pt", before, behind);
  expect_second_tensor(folder / "a.pt");
}

}  // namespace
}  // namespace weft
