// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <algorithm>
#include <array>

namespace weft {
namespace {

constexpr int kDeepest = 64;

/// Calls `mark` with each bracket, comma and colon outside of strings.
template <class Mark>
void for_each_mark(std::string_view text, Mark&& mark) {
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && quoted)
      ++i;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted)
      mark(text[i]);
  }
}

}  // namespace

std::string standard_json(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
      if (!quoted && text.substr(i, word.size()) == word) length = word.size();
    if (length > 0) {
      out += "null";
      i += length - 1;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    out += text[i];
    if (text[i] == '\\' && quoted && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

int json_nesting(std::string_view text) {
  int depth = 0, deepest = 0;
  for_each_mark(text, [&](char c) {
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  });
  return deepest;
}

void check_nesting(std::string_view text, std::string_view what) {
  const int deepest = json_nesting(text);
  WEFT_CHECK(deepest <= kDeepest, printable(what), ": expected JSON of at most ", kDeepest, " levels, got ", deepest);
}

void check_ordered(std::string_view text, std::string_view what) {
  constexpr int kMostNames = 1000;
  check_nesting(text, what);
  std::array<int, kDeepest + 1> names{};  // names in the object or list of each open level
  int depth = 0, most = 0;
  for_each_mark(text, [&](char c) {
    if (c == '{' || c == '[') names[static_cast<size_t>(++depth)] = 0;
    if (c == ':') most = std::max(most, ++names[static_cast<size_t>(depth)]);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  });
  WEFT_CHECK(most <= kMostNames, printable(what), ": expected at most ", kMostNames, " names in a JSON object, got ",
             most);
}

}  // namespace weft
