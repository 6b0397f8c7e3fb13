// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/jinja/value.h"

// Texts, by characters of UTF-8 as in Python.

namespace weft::data::jinja {

/// The bytes at which characters begin, and the end.
std::vector<size_t> characters(const std::string& text);

inline constexpr std::string_view kSpaces = " \t\n\r\v\f";

/// Whether c is a letter of ASCII.
bool is_letter(char c);

/// Without the characters of `set` at its sides; none: without white space.
std::string stripped(const std::string& text, const std::optional<std::string>& set, bool left, bool right);

/// In upper or lower case. Errors, here and below: letters beyond ASCII.
std::string mapped(std::string text, bool upper);
/// Python's method.
std::string title(const std::string& text);
/// Jinja's filter: a word begins after white space, '-' or an opening bracket.
std::string words_titled(const std::string& text);
std::string capitalized(const std::string& text);

/// Errors: an empty `from`.
std::string replaced(const std::string& text, const std::string& from, const std::string& to);

/// At `separator`, or at white space, at most `most` times; below 0: each time. Errors: an empty separator.
List split(const std::string& text, const std::optional<std::string>& separator, int64_t most);

}  // namespace weft::data::jinja
