// SPDX-License-Identifier: Apache-2.0
#include "io/weights/name_pattern.h"

#include <algorithm>

namespace weft {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool match(std::string_view pattern, std::string_view name, NameMatch& result) {
  if (pattern.empty()) return name.empty();
  const std::string_view rest = pattern.substr(1);
  if (pattern[0] == '*') {
    for (size_t length = 0; length <= name.size(); ++length) {
      NameMatch tried = result;
      tried.captures.emplace_back(name.substr(0, length));
      if (match(rest, name.substr(length), tried)) return result = tried, true;
    }
    return false;
  }
  if (pattern[0] == '#' || pattern[0] == '@') {
    const auto length = static_cast<size_t>(std::find_if_not(name.begin(), name.end(), is_digit) - name.begin());
    if (length == 0) return false;
    if (pattern[0] == '#') result.captures.emplace_back(name.substr(0, length));
    return match(rest, name.substr(length), result);
  }
  if (pattern[0] == '{') {
    const std::vector<std::string> words = words_of(pattern);
    for (size_t i = 0; i < words.size(); ++i) {
      NameMatch tried = result;
      tried.word = i;
      if (name.starts_with(words[i]) &&
          match(pattern.substr(pattern.find('}') + 1), name.substr(words[i].size()), tried))
        return result = tried, true;
    }
    return false;
  }
  return !name.empty() && name[0] == pattern[0] && match(rest, name.substr(1), result);
}

}  // namespace

std::optional<NameMatch> match_name(std::string_view pattern, std::string_view name) {
  NameMatch result;
  if (!match(pattern, name, result)) return std::nullopt;
  return result;
}

std::string fill_name(std::string_view pattern, const NameMatch& match) {
  std::string name;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '#' || pattern[i] == '*') {
      name += match.captures.at(next++);
    } else if (pattern[i] == '{') {
      name += words_of(pattern.substr(i)).at(match.word);
      i = pattern.find('}', i);
    } else {
      name += pattern[i];
    }
  }
  return name;
}

std::vector<std::string> words_of(std::string_view pattern) {
  std::vector<std::string> words;
  const size_t open = pattern.find('{'), close = pattern.find('}');
  if (open == std::string_view::npos) return words;
  for (size_t begin = open + 1; begin <= close;) {
    const size_t end = std::min(pattern.find(',', begin), close);
    words.emplace_back(pattern.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace weft
