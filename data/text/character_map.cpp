// SPDX-License-Identifier: Apache-2.0
#include "data/text/character_map.h"

#include "core/utf8.h"
#include "data/text/words.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

std::string bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    WEFT_CHECK(digit != kDigits.npos, "precompiled_charsmap: expected base64, got the byte ",
               static_cast<int>(static_cast<uint8_t>(c)));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

uint32_t word_at(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return word;
}

}  // namespace

CharacterMap::CharacterMap(std::string_view base64) {
  const std::string bytes = bytes_of_base64(base64);
  const size_t size = bytes.size() < 4 ? 0 : word_at(bytes, 0);
  WEFT_CHECK(size >= 4 && size % 4 == 0 && size <= bytes.size() - 4 && bytes.ends_with('\0'),
             "precompiled_charsmap: expected a trie of ", size, " bytes and replacements that end with zeros, got ",
             bytes.size(), " bytes");
  for (size_t at = 4; at < 4 + size; at += 4) units_.push_back(word_at(bytes, at));
  replacements_ = bytes.substr(4 + size);
}

const char* CharacterMap::find(std::string_view text) const {
  const auto unit_at = [&](size_t place) {
    WEFT_CHECK(place < units_.size(), "precompiled_charsmap: its trie leaves its ", units_.size(), " units");
    return units_[place];
  };
  const auto offset = [](uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & 1u << 9) >> 6); };
  size_t place = offset(unit_at(0));
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    place ^= byte;
    const uint32_t unit = unit_at(place);
    if (byte == 0 || (unit & (1u << 31 | 0xFF)) != byte) return nullptr;
    place ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;  // no entry ends here
    const size_t value = unit_at(place) & ~(1u << 31);
    WEFT_CHECK(value < replacements_.size(), "precompiled_charsmap: its trie names the replacement at ", value, " of ",
               replacements_.size(), " bytes");
    return replacements_.c_str() + value;
  }
  return nullptr;
}

std::string CharacterMap::apply(std::string_view text) const {
  if (units_.empty()) return std::string(text);
  std::string result;
  for (const std::string_view cluster : grapheme_clusters(text)) {
    constexpr size_t kWhole = 6;
    if (const char* const whole = cluster.size() < kWhole ? find(cluster) : nullptr) {
      result += whole;
      continue;
    }
    for (size_t at = 0; at < cluster.size();) {
      uint32_t number = 0;
      const std::string_view one = cluster.substr(at, std::max<size_t>(decode_utf8(cluster, at, number), 1));
      if (const char* const found = find(one))
        result += found;
      else
        result += one;
      at += one.size();
    }
  }
  return result;
}

}  // namespace weft::data
