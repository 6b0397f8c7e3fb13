// SPDX-License-Identifier: Apache-2.0
#include "core/joined.h"

#include <algorithm>

namespace weft {

std::string joined(const std::vector<std::string>& names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), limit); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > limit) text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

}  // namespace weft
