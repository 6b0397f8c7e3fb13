// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

namespace weft {

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78; RFC 3720, B.4) of `size` bytes. Checksums long data in pieces:
/// `crc32c(b, nb, crc32c(a, na))` is the checksum of a followed by b.
uint32_t crc32c(const void* bytes, size_t size, uint32_t crc = 0);

}  // namespace weft
