// SPDX-License-Identifier: Apache-2.0
#include "train/record/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>

#include "core/text.h"

namespace weft::train {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

/// The next character of a UTF-8 text, and after it; a byte that begins none is U+FFFD.
uint32_t next_character(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead <= 0xF4 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || at + static_cast<size_t>(more) > text.size()) return kReplacement;
  uint32_t character = lead & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at + static_cast<size_t>(i)) & 0xC0) != 0x80) return kReplacement;
    character = character << 6 | (byte(at + static_cast<size_t>(i)) & 0x3F);
  }
  constexpr std::array<uint32_t, 4> least{0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < least[static_cast<size_t>(more)] || character > 0x10FFFF || is_surrogate) return kReplacement;
  at += static_cast<size_t>(more);
  return character;
}

/// Characters that a YAML file cannot hold as they are, and those that break or hide a line.
bool must_be_escaped(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF || c == 0xFFFE ||
         c == 0xFFFF;
}

/// Words that some version of YAML takes for something else than a text.
bool is_reserved(std::string_view word) {
  constexpr std::array<const char*, 10> words{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"};
  return std::find(words.begin(), words.end(), lower_case(word)) != words.end();
}

}  // namespace

std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t c = next_character(text, at);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", static_cast<char>(c));
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (must_be_escaped(c))
      out += c < 0x100 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
    else if (c == kReplacement)
      out += "\xEF\xBF\xBD";
    else
      out += text.substr(begin, at - begin);
  }
  return out + '"';
}

std::string yaml_key(std::string_view key) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '/'; };
  const bool plain = !key.empty() && (std::isalpha(static_cast<unsigned char>(key[0])) || key[0] == '_') &&
                     std::all_of(key.begin(), key.end(), is_plain) && !is_reserved(key);
  return plain ? std::string(key) : yaml_text(key);
}

std::string yaml_number(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value < 0 ? "-.inf" : ".inf";
  std::string text = fmt::format("{}", value);
  const size_t exponent = text.find('e');
  if (exponent == std::string::npos) return text;  // 32 or 0.001
  const std::string mantissa = text.substr(0, exponent);
  return mantissa + (mantissa.find('.') == std::string::npos ? ".0" : "") + text.substr(exponent);
}

}  // namespace weft::train
