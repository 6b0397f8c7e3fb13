// SPDX-License-Identifier: Apache-2.0
#include "data/text/words.h"

#include <utf8proc.h>

namespace weft::data {
namespace {

constexpr utf8proc_int32_t kReplacement = 0xFFFD;

/// Unassigned characters (CN) are none: their words become [UNK].
bool is_control(utf8proc_int32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return true;
    default:
      return false;
  }
}

bool is_space(utf8proc_int32_t c) {
  if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/// All of ASCII that is neither letter, digit nor space, and Unicode's punctuation.
bool is_punctuation(utf8proc_int32_t c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126)) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

/// The blocks of CJK Unified Ideographs, their extensions A to E, and the compatibility ideographs.
bool is_ideograph(utf8proc_int32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void append(std::string& text, utf8proc_int32_t c) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(c, bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

class Words {
 public:
  explicit Words(bool lowercase) : lowercase_(lowercase) {}

  void add(utf8proc_int32_t c) {
    if (c == 0 || c == kReplacement || is_control(c)) return;
    if (is_space(c)) return end_word();
    const bool ideograph = is_ideograph(c);
    if (ideograph) end_word();
    if (lowercase_)
      add_plain(c);
    else
      add_character(c);
    if (ideograph) end_word();
  }
  std::vector<std::string> take() {
    end_word();
    return std::move(words_);
  }

 private:
  /// The canonical decomposition of a character, without accents, in small letters. Only then is it known whether it is
  /// punctuation: without its stroke an unequal sign is an equals sign.
  void add_plain(utf8proc_int32_t c) {
    utf8proc_int32_t parts[32];  // a canonical decomposition has at most 4
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN) add_character(utf8proc_tolower(parts[i]));
  }
  void add_character(utf8proc_int32_t c) {
    const bool punctuation = is_punctuation(c);
    if (punctuation) end_word();
    append(word_, c);
    if (punctuation) end_word();
  }
  void end_word() {
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  bool lowercase_;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> split_words(std::string_view text, bool lowercase) {
  Words words(lowercase);
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    utf8proc_int32_t c = kReplacement;
    const utf8proc_ssize_t used = utf8proc_iterate(at, end - at, &c);
    at += used > 0 ? used : 1;
    words.add(used > 0 ? c : kReplacement);
  }
  return words.take();
}

}  // namespace weft::data
