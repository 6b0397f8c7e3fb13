// SPDX-License-Identifier: Apache-2.0
#include "data/text/words.h"

#include <utf8proc.h>

#include <cstdlib>
#include <memory>

#include "core/text.h"

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

/// Calls `each` with every character and the bytes that it takes; an invalid byte is kReplacement.
template <class Each>
void for_each_character(std::string_view text, Each&& each) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    utf8proc_int32_t c = kReplacement;
    const utf8proc_ssize_t used = utf8proc_iterate(at, end - at, &c);
    at += used > 0 ? used : 1;
    each(used > 0 ? c : kReplacement, used > 0 ? static_cast<size_t>(used) : 1);
  }
}

void append_small(std::string& text, utf8proc_int32_t c) {
  append(text, utf8proc_tolower(c));
  if (c == 0x130) append(text, 0x307);  // the one small letter that is two characters: i and its dot
}

/// The canonical decomposition of a character without accents.
void append_plain(std::string& text, utf8proc_int32_t c, bool lowercase) {
  utf8proc_int32_t parts[32];  // a canonical decomposition has at most 4
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN)
      lowercase ? append_small(text, parts[i]) : append(text, parts[i]);
}

bool is_word_character(utf8proc_int32_t c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND) || category == UTF8PROC_CATEGORY_PC ||
         category == UTF8PROC_CATEGORY_NL || c == 0x200C || c == 0x200D;
}

/// Where the last character of a text that is not empty begins.
std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return text.substr(begin);
}

/// The kinds of characters in GPT-2's pattern.
enum class Kind : uint8_t { letter, digit, space, mark };

/// Spaces are those of Unicode's property White_Space.
Kind kind_of(utf8proc_int32_t c) {
  if ((c >= '\t' && c <= '\r') || c == 0x85 || is_space(c)) return Kind::space;
  const utf8proc_category_t category = utf8proc_category(c);
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return Kind::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Kind::digit;
  return Kind::mark;
}

/// The character at `at` of a text that is longer.
struct Character {
  Kind kind;
  size_t bytes;
  utf8proc_category_t category = UTF8PROC_CATEGORY_CN;
};
Character character_at(std::string_view text, size_t at) {
  utf8proc_int32_t c = kReplacement;
  const utf8proc_ssize_t used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                                 static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return used > 0 ? Character{kind_of(c), static_cast<size_t>(used), utf8proc_category(c)} : Character{Kind::mark, 1};
}

/// Bytes of the piece at the beginning of a text that is not empty.
size_t piece_length(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(ending)) return ending.size();
  size_t end = 0, last = 0;  // last: where the last character of a run begins
  const auto run = [&](Kind kind) {
    while (end < text.size()) {
      const Character next = character_at(text, end);
      if (next.kind != kind) break;
      last = end;
      end += next.bytes;
    }
  };
  const size_t ahead = text[0] == ' ' ? 1 : 0;
  if (ahead < text.size()) {
    const Kind kind = character_at(text, ahead).kind;
    if (kind != Kind::space) {
      end = ahead;
      run(kind);
      return end;
    }
  }
  run(Kind::space);  // its last space goes with the next word
  return end == text.size() || last == 0 ? end : last;
}

/// Where a run of characters of one kind that begins at `at` ends; it has `most` characters at most.
size_t run_end(std::string_view text, size_t at, Kind kind, size_t most = SIZE_MAX) {
  for (; at < text.size() && most > 0; --most) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.bytes;
  }
  return at;
}

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

/// Bytes of 's 't 're 've 'm 'll 'd in any case, also with the long s, at the beginning of a text; 0: another text.
size_t ending_length(std::string_view text) {
  if (text.starts_with("'\u017F")) return 3;
  if (!text.starts_with('\'')) return 0;
  const auto small = [&](size_t i) {
    return i < text.size() && text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] + 'a' - 'A')
           : i < text.size()                                   ? text[i]
                                                               : '\0';
  };
  const char a = small(1), b = small(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

bool is_combining(const Character& c) {
  return c.category >= UTF8PROC_CATEGORY_MN && c.category <= UTF8PROC_CATEGORY_ME;
}

/// Where Tekken's word at `begin` ends: capitals, then small letters. Letters without case and marks are both.
size_t cased_end(std::string_view text, size_t begin) {
  size_t last = begin;  // where the last character ends that may be a small letter
  const auto run = [&](size_t end, bool small) {
    for (Character next{}; end < text.size(); end += next.bytes) {
      next = character_at(text, end);
      const bool both = next.category >= UTF8PROC_CATEGORY_LM && next.category <= UTF8PROC_CATEGORY_ME;
      const bool capital = next.category == UTF8PROC_CATEGORY_LU || next.category == UTF8PROC_CATEGORY_LT;
      if (!both && !(small ? next.category == UTF8PROC_CATEGORY_LL : capital)) break;
      if (both || small) last = end + next.bytes;
    }
    return end;
  };
  const size_t capitals = run(begin, false);
  run(capitals, true);
  return last > begin ? last : capitals;
}

/// The pattern of Llama-3, Qwen-2 or Tekken.
size_t long_piece_length(std::string_view text, PiecePattern pattern) {
  const bool tekken = pattern == PiecePattern::tekken;
  if (const size_t ending = tekken ? 0 : ending_length(text); ending > 0) return ending;
  const Character first = character_at(text, 0);
  if (first.kind == Kind::digit) return run_end(text, 0, Kind::digit, pattern == PiecePattern::llama3 ? 3 : 1);
  if (!is_line_end(text[0])) {
    const bool inside = first.kind == Kind::letter || (tekken && is_combining(first));
    const size_t begin = inside ? 0 : first.bytes;
    const size_t end = tekken ? cased_end(text, begin) : run_end(text, begin, Kind::letter);
    if (end > begin) return end;
  }
  const size_t begin = text[0] == ' ' ? 1 : 0;
  if (size_t end = run_end(text, begin, Kind::mark); end > begin) {
    while (end < text.size() && (is_line_end(text[end]) || (tekken && text[end] == '/'))) ++end;
    return end;
  }
  size_t end = 0, last = 0, after_line = 0;  // last: where the last character of the run begins
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::space) break;
    if (is_line_end(text[end])) after_line = end + 1;
    last = end;
    end += next.bytes;
  }
  if (after_line > 0) return after_line;
  return end == text.size() || last == 0 ? end : last;  // the last one goes with the next piece
}

template <class Length>
void append_pieces(std::vector<std::string_view>& pieces, std::string_view text, const Length& length) {
  for (; !text.empty(); text.remove_prefix(pieces.back().size())) pieces.push_back(text.substr(0, length(text)));
}

/// As it is where its UTF-8 is invalid.
std::string mapped(std::string_view text, int options) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &made, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  return size < 0 ? std::string(text) : std::string(reinterpret_cast<const char*>(made), static_cast<size_t>(size));
}

}  // namespace

std::vector<std::string_view> split_pieces(std::string_view text) { return split_pieces(text, PiecePattern::gpt2); }

std::vector<std::string_view> split_pieces(std::string_view text, PiecePattern pattern) {
  std::vector<std::string_view> pieces;
  if (pattern == PiecePattern::gpt2) {
    append_pieces(pieces, text, piece_length);
  } else if (pattern != PiecePattern::digits) {
    append_pieces(pieces, text, [pattern](std::string_view rest) { return long_piece_length(rest, pattern); });
  } else {
    for (size_t begin = 0; begin < text.size();) {
      const size_t digit = run_end(text, begin, Kind::digit, 1);
      if (digit > begin) {
        pieces.push_back(text.substr(begin, digit - begin));
        begin = digit;
        continue;
      }
      size_t end = begin;
      for (Character next{}; end < text.size(); end += next.bytes)
        if ((next = character_at(text, end)).kind == Kind::digit) break;
      append_pieces(pieces, text.substr(begin, end - begin), piece_length);
      begin = end;
    }
  }
  return pieces;
}

std::string sole_difference(std::string_view a, std::string_view b) {
  const std::string small_a = lower_case(a), small_b = lower_case(b);
  if (a == b || composed_text(small_a) != composed_text(small_b)) return "";
  return small_a == small_b ? "case" : "how accents are stored (NFC, NFD)";
}

std::vector<std::string_view> grapheme_clusters(std::string_view text) {
  std::vector<std::string_view> clusters;
  utf8proc_int32_t last = 0, state = 0;
  size_t begin = 0, end = 0;
  for_each_character(text, [&](utf8proc_int32_t c, size_t bytes) {
    if (end > begin && utf8proc_grapheme_break_stateful(last, c, &state)) {
      clusters.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    last = c;
    end += bytes;
  });
  if (end > begin) clusters.push_back(text.substr(begin));
  return clusters;
}

std::string composed_text(std::string_view text) { return mapped(text, UTF8PROC_COMPOSE); }
std::string compatible_text(std::string_view text) { return mapped(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT); }

std::string normalized_text(std::string_view text, const WordOptions& options) {
  const bool plain = options.strip_accents.value_or(options.lowercase);
  std::string result;
  for_each_character(text, [&](utf8proc_int32_t c, size_t) {
    if (options.cleans_text && (c == 0 || c == kReplacement || is_control(c))) return;
    if (options.cleans_text && is_space(c)) c = ' ';
    const bool parted = options.parts_ideographs && is_ideograph(c);
    if (parted) result += ' ';
    if (plain)
      append_plain(result, c, options.lowercase);
    else
      options.lowercase ? append_small(result, c) : append(result, c);
    if (parted) result += ' ';
  });
  return result;
}

/// Punctuation is known only now: without its stroke an unequal sign is an equals sign.
std::vector<std::string> split_normalized(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for_each_character(text, [&](utf8proc_int32_t c, size_t) {
    if (is_space(c)) return end_word();
    const bool punctuation = is_punctuation(c);
    if (punctuation) end_word();
    append(word, c);
    if (punctuation) end_word();
  });
  end_word();
  return words;
}

std::vector<std::string> split_words(std::string_view text, const WordOptions& options) {
  return split_normalized(normalized_text(text, options));
}

bool begins_in_word(std::string_view text) {
  if (text.empty()) return false;
  utf8proc_int32_t c = kReplacement;
  return utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                          static_cast<utf8proc_ssize_t>(text.size()), &c) > 0 &&
         is_word_character(c);
}
bool ends_in_word(std::string_view text) { return !text.empty() && begins_in_word(last_character(text)); }

size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != Kind::space) break;
    end += next.bytes;
  }
  return end;
}
size_t trailing_space(std::string_view text) {
  const size_t whole = text.size();
  while (!text.empty() && leading_space(last_character(text)) > 0) text.remove_suffix(last_character(text).size());
  return whole - text.size();
}

}  // namespace weft::data
