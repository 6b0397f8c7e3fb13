// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace weft {
namespace {

static_assert(std::endian::native == std::endian::little, "crc32c reads eight bytes at once, lowest first");

// tables[k][b]: the contribution of byte b when k more bytes follow. Eight tables let a step process eight bytes
// ("slicing by 8"), about eight times as fast as byte by byte.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0u);
    tables[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte)
    for (int k = 1; k < 8; ++k) tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}();

}  // namespace

uint32_t crc32c(const void* bytes, size_t size, uint32_t crc) {
  const auto* p = static_cast<const unsigned char*>(bytes);
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; --size, ++p) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xff];
  return ~crc;
}

}  // namespace weft
