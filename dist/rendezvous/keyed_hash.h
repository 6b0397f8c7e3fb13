// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace weft::dist {

inline constexpr size_t kHashBytes = 32;

/// Errors: this build has no libsodium.
void require_keyed_hash();

/// HMAC-SHA256 (RFC 2104, FIPS 180-4): 32 bytes that only a holder of `key` can compute for `message`. Errors: this
/// build has no libsodium.
std::string keyed_hash(std::string_view key, std::string_view message);

/// Whether two hashes are equal, in constant time.
bool same_hash(std::string_view a, std::string_view b);

/// Unpredictable bytes from the operating system.
std::string random_bytes(size_t count);

/// Bytes as lower-case hexadecimal digits.
std::string hexadecimal(std::string_view bytes);

}  // namespace weft::dist
