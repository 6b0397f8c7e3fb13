// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::support {

/// What a name had in the places of a pattern (see NameRule).
struct NameMatch {
  std::vector<std::string> captures;  ///< for each `#` and `*`
  size_t word = 0;                    ///< which of the words between braces
};

/// Nothing where the whole name does not fit.
std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name);

/// The pattern with the captures in their places, and of the words the one with this number.
std::string fill_name(std::string_view pattern, const NameMatch& match);

/// The words between braces; none without braces.
std::vector<std::string> words_of(std::string_view pattern);

}  // namespace weft::support
