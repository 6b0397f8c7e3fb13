// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::data {

/// The name that needs the fewest single-letter changes to become `text` (Levenshtein's distance); empty without names.
std::string nearest_name(const std::string& text, const std::vector<std::string>& names);
/// `a, b, c`.
std::string joined(const std::vector<std::string>& names);

}  // namespace weft::data
