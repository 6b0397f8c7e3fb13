// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace weft {
namespace {

TEST(Crc32c, KnownValues) {
  // RFC 3720, B.4, and the check value of the CRC catalogue.
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

TEST(Crc32c, InPieces) {
  std::mt19937 random(std::random_device{}());
  std::string data(1000, '\0');
  for (char& c : data) c = static_cast<char>(random());
  for (size_t cut = 0; cut < 40; ++cut)
    EXPECT_EQ(crc32c(data.data() + cut, data.size() - cut, crc32c(data.data(), cut)), crc32c(data.data(), data.size()));
}

}  // namespace
}  // namespace weft
