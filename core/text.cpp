// SPDX-License-Identifier: Apache-2.0
#include "core/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include "core/utf8.h"

namespace weft {

std::string joined(const std::vector<std::string>& names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), limit); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > limit) text += " and " + std::to_string(names.size() - limit) + " more";
  return text;
}

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Whether a terminal shows the character where it stands: no control character, no line or paragraph separator, no
/// mark of Unicode's bidirectional algorithm (UAX #9: ALM, LRM, RLM, embeddings, overrides, isolates), no zero-width
/// one.
bool is_shown(uint32_t c) {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return false;
  const bool separator = c == 0x2028 || c == 0x2029,
             zero_width = (c >= 0x200B && c <= 0x200D) || c == 0x2060 || c == 0xFEFF;
  const bool bidirectional =
      c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
  return !separator && !zero_width && !bidirectional;
}

void append(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (size_t at = 0; at < text.size();) {
    uint32_t number = 0;
    const size_t length = decode_utf8(text, at, number);
    const size_t bytes = std::max<size_t>(length, 1);
    if (length > 0 && is_shown(number)) {
      out += text.substr(at, length);
    } else {
      for (const char c : text.substr(at, bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      }
    }
    at += bytes;
  }
}

}  // namespace

size_t decode_utf8(std::string_view text, size_t at, uint32_t& number) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || length > text.size() - at) return 0;
  number = length == 1 ? first : first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!continues(text[at + i])) return 0;
    number = number << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = number >= 0xD800 && number < 0xE000;
  return number < kSmallest[length] || number > 0x10FFFF || surrogate ? 0 : length;
}

std::string printable(std::string_view text, size_t most) {
  std::string out;
  if (text.size() <= most) {
    append(out, text);
    return out;
  }
  size_t head = most / 4 * 3,
         tail = text.size() - most / 4;  // a message begins with its subject and ends with a hint
  while (head > 0 && continues(text[head])) --head;
  while (tail < text.size() && continues(text[tail])) ++tail;
  append(out, text.substr(0, head));
  out += "… (" + std::to_string(text.size()) + " bytes) …";
  append(out, text.substr(tail));
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

namespace {

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal string
/// alignment distance; Damerau 1964).
int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table d[i][j], the distance of the first i letters of a from the first j of b.
  std::vector<int> before(b.size() + 1), previous(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(previous);
    previous.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string mistyped = lower_case(word);
  const int farthest = std::max<int>(1, static_cast<int>(mistyped.size()) / 3);
  std::optional<std::string> best;
  int best_distance = farthest + 1;
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(mistyped, lower_case(candidate));
    if (mistyped.size() >= 3 && lower_case(candidate).starts_with(mistyped)) distance = std::min(distance, farthest);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  if (const auto near = nearest(word, candidates)) return " Did you mean '" + *near + "'?";
  return " Known: " + joined(candidates) + ".";
}

}  // namespace weft
