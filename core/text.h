// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// `a, b, c`, or with a limit of 2 `a, b and 1 more`.
std::string joined(const std::vector<std::string>& names, size_t limit = SIZE_MAX);

/// Text from a file, a folder or a user as a message shows it: one line of valid UTF-8 that moves no cursor. Control
/// characters (C0, C1), line separators, marks that turn the reading direction, and bytes that are no UTF-8 become
/// `\x0a`, byte by byte. A text above `most` bytes loses its middle: `aaa… (60000000 bytes) …aaa`.
std::string printable(std::string_view text, size_t most = 4096);

/// As above, for each line of a text that may have several.
std::string printable_lines(std::string_view text);

/// The text with A to Z as small letters; other bytes stay.
std::string lower_case(std::string_view text);

/// The candidate that a mistyped word most likely means: the closest (case ignored), or one that the word begins.
/// Nothing when all are further away than a third of the word.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `" Did you mean 'resnet18'?"`, or `" Known: resnet18, resnet34."` when none is near.
std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace weft
