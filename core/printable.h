// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

/// Text from a file, a folder or a user as a message shows it: one line of valid UTF-8 that moves no cursor. Control
/// characters (C0, C1), line separators, marks that turn the reading direction, and bytes that are no UTF-8 become
/// `\x0a`, byte by byte. Of a text above `most` bytes the middle is left out: `aaa… (60000000 bytes) …aaa`.
std::string printable(std::string_view text, size_t most = 4096);

/// The same for each line of a text that may have several.
std::string printable_lines(std::string_view text);

}  // namespace weft
