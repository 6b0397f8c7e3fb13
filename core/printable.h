// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace weft {

/// Text from a file or a user as an error shows it: one line, control characters as `\x0a`.
std::string printable(std::string_view text);

}  // namespace weft
