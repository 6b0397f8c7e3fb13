// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/machine/fault.h"

namespace emulator::ptx {

/// Reads PTX word by word. It never allocates: results are views into the text. Lines are counted on the way.
class Lexer {
 public:
  Lexer(std::string_view text, uint32_t line)
      : at_(text.data()), end_(text.data() + text.size()), line_(line), last_line_(line) {}

  /// The next character after blanks and comments; 0 at the end.
  char peek() {
    skip_blanks();
    return at_ < end_ ? *at_ : '\0';
  }
  /// The character at the cursor, blanks included, or one further on; 0 past the end.
  char raw(size_t ahead = 0) const { return at_ + ahead < end_ ? at_[ahead] : '\0'; }
  const char* cursor() const { return at_; }
  void advance(size_t count = 1) { at_ += count; }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    last_line_ = line_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(cat("expected '", c, "'"));
  }

  /// A name of letters, digits, _, $ and %; empty when there is none.
  std::string_view word() {
    skip_blanks();
    last_line_ = line_;
    return word_here();
  }
  std::string_view name(const char* what) {
    const std::string_view found = word();
    if (found.empty()) fail(cat("expected ", what));
    return found;
  }
  /// The word of a modifier or directive, which may hold `::`; the cursor is after its dot.
  std::string_view modifier() {
    const char* const begin = at_;
    while (at_ < end_) {
      if (is_word(*at_))
        ++at_;
      else if (*at_ == ':' && raw(1) == ':')
        at_ += 2;
      else
        break;
    }
    if (at_ == begin) fail("expected a name after '.'");
    return {begin, static_cast<size_t>(at_ - begin)};
  }
  /// `.name`, without the dot; empty, and nothing is read, when there is none.
  std::string_view directive() {
    if (peek() != '.') return {};
    last_line_ = line_;
    ++at_;
    return modifier();
  }
  /// "…", without the quotes.
  std::string_view string() {
    expect('"');
    const char* const begin = at_;
    while (at_ < end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 < end_ ? 2 : 1;
    const std::string_view found(begin, static_cast<size_t>(at_ - begin));
    expect('"');
    return found;
  }
  /// The text between { and its matching }; the cursor is after the {, and then after the }.
  std::string_view braces();
  /// Skips past the next `;`.
  void skip_statement();

  /// Held while what nests is read: a text must not overflow the stack.
  class Nested {
   public:
    explicit Nested(Lexer& lexer) : lexer_(lexer) {
      if (++lexer.depth_ > kDeepest) lexer.fail("parentheses or braces nest too deeply");
    }
    ~Nested() { --lexer_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Lexer& lexer_;
  };

  uint32_t line() const { return line_; }
  [[noreturn]] void fail(const std::string& what) const;
  /// A text as a message shows it: without control characters.
  static std::string one_line(std::string_view text);

  static bool is_word(char c) { return kClass[static_cast<uint8_t>(c)] & kWord; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

 private:
  static constexpr int kDeepest = 200;
  static constexpr uint8_t kWord = 1, kBlank = 2, kBody = 4;
  static constexpr std::array<uint8_t, 256> kClass = [] {
    std::array<uint8_t, 256> table{};
    for (int c = '0'; c <= '9'; ++c) table[static_cast<size_t>(c)] = kWord;
    for (int c = 'a'; c <= 'z'; ++c) table[static_cast<size_t>(c)] = kWord;
    for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<size_t>(c)] = kWord;
    for (const char c : {'_', '$', '%'}) table[static_cast<size_t>(c)] = kWord;
    for (const char c : {' ', '\t', '\r', '\n', '\f', '\v'}) table[static_cast<size_t>(c)] = kBlank;
    for (const char c : {'{', '}', '"', '/'}) table[static_cast<size_t>(c)] |= kBody;
    return table;
  }();

  std::string_view word_here() {
    const char* const begin = at_;
    while (at_ < end_ && is_word(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }
  void skip_blanks() {
    while (at_ < end_) {
      if (kClass[static_cast<uint8_t>(*at_)] & kBlank) {
        line_ += *at_ == '\n';
        ++at_;
      } else if (*at_ != '/' || !skip_comment()) {
        return;
      }
    }
  }
  /// False when no comment begins here.
  bool skip_comment();

  const char* at_;
  const char* end_;
  uint32_t line_;
  int depth_ = 0;
  uint32_t last_line_;  ///< where the last word began: errors are reported from here
};

}  // namespace emulator::ptx
