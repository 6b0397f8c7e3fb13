// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

/// The length of the UTF-8 character that begins at `at`, and its number; 0 where the bytes are none: cut short, too
/// long for their number, a surrogate, beyond U+10FFFF.
size_t decode_utf8(std::string_view text, size_t at, uint32_t& number);

}  // namespace weft
