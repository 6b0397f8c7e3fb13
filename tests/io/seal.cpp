// SPDX-License-Identifier: Apache-2.0
#include "io/seal.h"

#include <gtest/gtest.h>

#include <random>

#include "io/crc32c.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

class Seal : public testing::Test {
 protected:
  std::string sealed(const std::string& content) {
    AtomicFile file(path, "test");
    test::write_file(file.temporary(), content);
    seal(file);
    file.commit();
    return test::read_file(path);
  }
  SealState state(const std::string& bytes) {
    test::write_file(path, bytes);
    return check_seal(path);
  }
  test::TemporaryFolder folder;
  std::filesystem::path path = folder / "file";
};

TEST_F(Seal, NameLengthChecksum) {
  const std::string bytes = sealed("content");
  ASSERT_EQ(bytes.size(), 7 + kSealBytes);
  const std::string head = std::string("contentWEFTSEAL") + std::string("\7\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(bytes.substr(0, 23), head);
  const uint32_t crc = crc32c(head.data(), head.size());
  EXPECT_EQ(bytes.substr(23), std::string(reinterpret_cast<const char*>(&crc), 4));
}

TEST_F(Seal, AnyFlippedBitBreaksIt) {
  std::mt19937_64 random{std::random_device{}()};
  const std::string whole = sealed(std::string(100, 'x'));
  EXPECT_EQ(state(whole), SealState::whole);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string bytes = whole;
    bytes[byte] ^= static_cast<char>(1 << random() % 8);
    EXPECT_NE(state(bytes), SealState::whole) << byte;
  }
}

TEST_F(Seal, CutShortLongerOrEmpty) {
  const std::string whole = sealed(std::string((3 << 20) + 5, 'x'));  // longer than one piece of reading
  EXPECT_EQ(state(whole), SealState::whole);
  EXPECT_EQ(state(whole.substr(0, whole.size() - 1)), SealState::missing);
  EXPECT_EQ(state(whole.substr(1)), SealState::broken);
  EXPECT_EQ(state(whole + "x"), SealState::missing);
  EXPECT_EQ(state(""), SealState::missing);
  EXPECT_EQ(state("x" + std::string(whole.end() - kSealBytes, whole.end())), SealState::broken);
  EXPECT_EQ(state(sealed("")), SealState::whole);
  EXPECT_EQ(check_seal(folder / "none"), SealState::broken);
}

}  // namespace
}  // namespace weft
