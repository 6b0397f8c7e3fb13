// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/texts.h"

#include <algorithm>

#include "core/utf8.h"
#include "kernels/error.h"

namespace weft::data::jinja {
namespace {

/// Python's str.isspace().
bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

std::vector<size_t> characters(const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = 0; at < text.size();) {
    places.push_back(at);
    uint32_t number = 0;
    at += std::max<size_t>(decode_utf8(text, at, number), 1);
  }
  places.push_back(text.size());
  return places;
}

std::string stripped(const std::string& text, const std::optional<std::string>& set, bool left, bool right) {
  const std::vector<size_t> places = characters(text);
  const auto goes = [&](size_t i) {
    const std::string one = text.substr(places[i], places[i + 1] - places[i]);
    uint32_t number = 0;
    return set ? set->find(one) != std::string::npos : decode_utf8(one, 0, number) > 0 && is_space(number);
  };
  size_t begin = 0, end = places.size() - 1;
  while (left && begin < end && goes(begin)) ++begin;
  while (right && end > begin && goes(end - 1)) --end;
  return text.substr(places[begin], places[end] - places[begin]);
}

std::string mapped(std::string text, bool upper) {
  for (char& c : text) {
    WEFT_CHECK(static_cast<uint8_t>(c) < 0x80, upper ? "upper" : "lower", ": letters beyond ASCII are not supported");
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string title(const std::string& text) {
  std::string result = mapped(text, false);
  for (size_t i = 0; i < result.size(); ++i)
    if (is_letter(result[i]) && (i == 0 || !is_letter(result[i - 1]))) result[i] = mapped({result[i]}, true)[0];
  return result;
}

std::string words_titled(const std::string& text) {
  std::string result = mapped(text, false);
  for (size_t i = 0; i < result.size(); ++i)
    if (i == 0 || std::string_view(" \t\n\r\v\f-({[<").find(result[i - 1]) != std::string_view::npos)
      result[i] = mapped({result[i]}, true)[0];
  return result;
}

std::string capitalized(const std::string& text) {
  std::string result = mapped(text, false);
  if (!result.empty()) result[0] = mapped({result[0]}, true)[0];
  return result;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  WEFT_CHECK(!from.empty(), "replace: expected a text to replace, got an empty one");
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == std::string::npos) return result;
    result += to;
    WEFT_CHECK(result.size() <= kLongest, "replace: the result has more than ", kLongest, " bytes");
    at = found + from.size();
  }
}

List split(const std::string& text, const std::optional<std::string>& separator, int64_t most) {
  List parts;
  if (!separator) {  // runs of white space
    for (size_t at = 0;;) {
      const size_t begin = text.find_first_not_of(kSpaces, at);
      if (begin == std::string::npos) return parts;
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
        parts.emplace_back(stripped(text.substr(begin), std::nullopt, false, true));
        return parts;
      }
      at = std::min(text.find_first_of(kSpaces, begin), text.size());
      parts.emplace_back(text.substr(begin, at - begin));
    }
  }
  WEFT_CHECK(!separator->empty(), "split: expected a separator, got an empty one");
  for (size_t at = 0;;) {
    const size_t found =
        most >= 0 && static_cast<int64_t>(parts.size()) == most ? std::string::npos : text.find(*separator, at);
    parts.emplace_back(text.substr(at, found - at));
    if (found == std::string::npos) return parts;
    at = found + separator->size();
  }
}

}  // namespace weft::data::jinja
