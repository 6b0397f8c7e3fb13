// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// `a, b, c`, or with a limit of 2 `a, b and 1 more`.
std::string joined(const std::vector<std::string>& names, size_t limit = SIZE_MAX);

}  // namespace weft
