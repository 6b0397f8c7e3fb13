// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/lexer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/text.h"
#include "data/text/jinja/texts.h"
#include "kernels/error.h"

namespace weft::data::jinja {
namespace {

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.pop_back();
  }
  std::vector<Token> tokens() {
    while (at_ < source_.size()) {
      const size_t open = next_opening();
      std::string text = source_.substr(at_, open - at_);
      const size_t begin = at_;
      if (open == std::string::npos) {
        add_text(text);
        break;
      }
      const char kind = source_[open + 1], mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
      if (mark == '-') {
        text = stripped(text, std::nullopt, false, true);
      } else if (kind != '{' && mark != '+') {  // lstrip_blocks
        const size_t content = text.find_last_not_of(" \t");
        const bool line_begins =
            content == std::string::npos ? begin == 0 || source_[begin - 1] == '\n' : text[content] == '\n';
        if (line_begins) text.resize(content == std::string::npos ? 0 : content + 1);
      }
      add_text(text);
      line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(begin),
                          source_.begin() + static_cast<std::ptrdiff_t>(open), '\n');
      at_ = open + 2 + (mark == '-' || mark == '+' ? 1 : 0);
      if (kind == '#')
        skip_comment();
      else
        inside(kind == '%');
    }
    tokens_.push_back({Token::end, "", line_});
    return std::move(tokens_);
  }
  int64_t line() const { return line_; }

 private:
  size_t next_opening() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return std::string::npos;
  }
  void add_text(const std::string& text) {
    if (!text.empty()) tokens_.push_back({Token::text, text, line_});
  }
  /// The white space after a closing tag.
  void after(bool strips, bool trims) {
    if (strips) {
      const size_t content = std::min(source_.find_first_not_of(kSpaces, at_), source_.size());
      line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                          source_.begin() + static_cast<std::ptrdiff_t>(content), '\n');
      at_ = content;
    } else if (trims && at_ < source_.size() && source_[at_] == '\n') {
      ++at_, ++line_;
    }
  }
  void skip_comment() {
    const size_t close = source_.find("#}", at_);
    WEFT_CHECK(close != std::string::npos, "expected the end of a comment, '#}'");
    line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                        source_.begin() + static_cast<std::ptrdiff_t>(close), '\n');
    const bool strips = close > at_ && source_[close - 1] == '-', keeps = close > at_ && source_[close - 1] == '+';
    at_ = close + 2;
    after(strips, !keeps);
  }
  void inside(bool block) {
    tokens_.push_back({block ? Token::begin_block : Token::begin_print, "", line_});
    const std::string close = block ? "%}" : "}}";
    int open = 0;  // brackets, as in {{ {'a': {}} }}
    for (;;) {
      while (at_ < source_.size() && kSpaces.find(source_[at_]) != std::string_view::npos)
        line_ += source_[at_++] == '\n';
      WEFT_CHECK(at_ < source_.size(), "expected '", close, "', got the end of the template");
      const char mark = source_[at_];
      const size_t skip = (mark == '-' || mark == '+') && source_.compare(at_ + 1, 2, close) == 0 ? 1 : 0;
      if (open == 0 && source_.compare(at_ + skip, 2, close) == 0) {
        at_ += 2 + skip;
        tokens_.push_back({block ? Token::end_block : Token::end_print, "", line_});
        return after(skip == 1 && mark == '-', block && !(skip == 1 && mark == '+'));
      }
      open += one_token();
    }
  }
  /// Reads a token; returns how the number of open brackets changes.
  int one_token() {
    const char c = source_[at_];
    const auto word = [](char x) { return is_letter(x) || x == '_' || (x >= '0' && x <= '9'); };
    const size_t begin = at_;
    if (c >= '0' && c <= '9') {
      while (at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9') ++at_;
      const bool real =
          at_ + 1 < source_.size() && source_[at_] == '.' && source_[at_ + 1] >= '0' && source_[at_ + 1] <= '9';
      if (real)
        for (++at_; at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9';) ++at_;
      WEFT_CHECK(at_ == source_.size() || !word(source_[at_]), "expected a number, got '",
                 printable(source_.substr(begin, at_ + 1 - begin), 40), "'");
      tokens_.push_back({real ? Token::real : Token::integer, source_.substr(begin, at_ - begin), line_});
      return 0;
    }
    if (word(c)) {
      while (at_ < source_.size() && word(source_[at_])) ++at_;
      tokens_.push_back({Token::name, source_.substr(begin, at_ - begin), line_});
      return 0;
    }
    if (c == '"' || c == '\'') {
      read_string(c);
      return 0;
    }
    for (const char* two : {"==", "!=", "<=", ">=", "//", "**"})
      if (source_.compare(at_, 2, two) == 0) {
        at_ += 2;
        tokens_.push_back({Token::sign, two, line_});
        return 0;
      }
    WEFT_CHECK(std::string_view("+-*/%~<>=.,:|()[]{}").find(c) != std::string_view::npos, "unexpected '",
               printable(source_.substr(at_, 1)), "'");
    ++at_;
    tokens_.push_back({Token::sign, std::string(1, c), line_});
    return c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
  }
  void read_string(char quote) {
    std::string value;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      line_ += source_[at_] == '\n';
      if (source_[at_] != '\\') {
        value += source_[at_];
        continue;
      }
      WEFT_CHECK(++at_ < source_.size(), "expected the end of a text");
      const char c = source_[at_];
      constexpr std::string_view kEscapes = "ntr\\'\"";
      const size_t known = kEscapes.find(c);
      if (c == 'u') {
        WEFT_CHECK(at_ + 4 < source_.size(), "expected four digits after \\u");
        const auto json = nlohmann::json::parse("\"\\u" + source_.substr(at_ + 1, 4) + "\"", nullptr, false);
        WEFT_CHECK(json.is_string(), "expected a character's number after \\u, got '",
                   printable(source_.substr(at_ + 1, 4)), "'");
        value += json.get<std::string>();
        at_ += 4;
      } else if (known != std::string_view::npos) {
        value += "\n\t\r\\'\""[known];
      } else if (c != '\n') {
        WEFT_CHECK(std::string_view("01234567abfvxNU").find(c) == std::string_view::npos, "the escape '\\", c,
                   "' is not supported");
        value += '\\';  // as Python keeps it
        value += c;
      }
    }
    WEFT_CHECK(at_ < source_.size(), "expected the end of a text, ", quote);
    ++at_;
    tokens_.push_back({Token::string, std::move(value), line_});
  }

  std::string source_;
  size_t at_ = 0;
  int64_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  Lexer lexer(source);
  try {
    return lexer.tokens();
  } catch (const Error& error) {
    fail("line ", lexer.line(), ": ", error.what());
  }
}

}  // namespace weft::data::jinja
