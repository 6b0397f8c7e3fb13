// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <algorithm>

namespace weft {

int json_nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && quoted)
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && (text[i] == '{' || text[i] == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (text[i] == '}' || text[i] == ']'))
      --depth;
  }
  return deepest;
}

void check_nesting(std::string_view text, std::string_view what) {
  constexpr int kDeepest = 64;
  const int deepest = json_nesting(text);
  WEFT_CHECK(deepest <= kDeepest, printable(what), ": expected JSON of at most ", kDeepest, " levels, got ", deepest);
}

}  // namespace weft
