// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// What the wildcards of a pattern (see NameRule) matched in a name.
struct NameMatch {
  std::vector<std::string> captures;  ///< for each `#` and `*`
  size_t word = 0;                    ///< which of the words between braces
};

/// Nothing unless the whole name matches.
std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name);

/// The pattern with the captures filled in, and the word with this number.
std::string fill_name(std::string_view pattern, const NameMatch& match);

/// The words between braces; none without braces.
std::vector<std::string> words_of(std::string_view pattern);

}  // namespace weft
