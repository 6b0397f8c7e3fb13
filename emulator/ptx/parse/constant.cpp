// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/parse/constant.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

namespace emulator::ptx {

namespace {

struct Operator {
  std::string_view text;
  int rank;
};

/// Longer ones before their beginnings. Ranks are C's.
constexpr Operator kOperators[] = {{"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7}, {"==", 6}, {"!=", 6},
                                   {"&&", 2}, {"||", 1}, {"*", 10}, {"/", 10}, {"%", 10}, {"+", 9},
                                   {"-", 9},  {"<", 7},  {">", 7},  {"&", 5},  {"^", 4},  {"|", 3}};

class Reader {
 public:
  Reader(Lexer& lexer, bool with_or) : lexer_(lexer), with_or_(with_or) {}

  Constant conditional() {
    const Lexer::Nested nested(lexer_);
    const Constant condition = binary(1);
    if (lexer_.peek() != '?') return condition;
    lexer_.expect('?');
    const Constant yes = conditional();
    lexer_.expect(':');
    const Constant no = conditional();
    return condition.value != 0 ? yes : no;
  }

 private:
  const Operator* next_operator() {
    const char first = lexer_.peek();
    const char second = lexer_.raw(1);
    for (const Operator& o : kOperators) {
      if (o.text[0] != first || (o.text.size() == 2 && o.text[1] != second)) continue;
      if (first == '|' && !with_or_) return nullptr;
      if (first == '%' && Lexer::is_word(second) && !Lexer::is_digit(second)) return nullptr;  // a register's name
      return &o;
    }
    return nullptr;
  }

  Constant binary(int lowest) {
    Constant left = unary();
    while (const Operator* o = next_operator()) {
      if (o->rank < lowest) break;
      lexer_.advance(o->text.size());
      left = apply(o->text, left, binary(o->rank + 1));
    }
    return left;
  }

  Constant unary() {
    const Lexer::Nested nested(lexer_);
    const char c = lexer_.peek();
    if (c == '-' || c == '+' || c == '~' || c == '!') {
      lexer_.advance();
      Constant inner = unary();
      if (c == '-' && inner.is_real)
        inner.value ^= inner.single ? int64_t{1} << 31 : std::numeric_limits<int64_t>::min();
      else if (c == '-')
        inner.value = static_cast<int64_t>(0 - static_cast<uint64_t>(inner.value));
      else if (c == '~')
        inner.value = ~inner.value;
      else if (c == '!')
        inner.value = inner.value == 0;
      if (c != '-' && c != '+' && inner.is_real) lexer_.fail("an operator of integers is applied to a real number");
      return inner;
    }
    if (c == '(') return parenthesis();
    if (Lexer::is_digit(c) || c == '.') return literal();
    if (lexer_.word() == "WARP_SZ") return {.value = 32};
    lexer_.fail("expected a constant");
  }

  Constant parenthesis() {
    lexer_.expect('(');
    const std::string_view type = lexer_.peek() == '.' && !Lexer::is_digit(lexer_.raw(1)) ? lexer_.directive() : "";
    Constant inner;
    if (type.empty()) {
      const bool outside = std::exchange(with_or_, true);
      inner = conditional();
      with_or_ = outside;
    }
    lexer_.expect(')');
    if (type.empty()) return inner;
    if (type != "s64" && type != "u64") lexer_.fail(cat("unknown cast to .", type));
    inner = unary();
    inner.is_unsigned = type == "u64";
    return inner;
  }

  Constant apply(std::string_view o, const Constant& left, const Constant& right) {
    if (left.is_real || right.is_real) return apply_real(o, left, right);
    const bool is_unsigned = left.is_unsigned || right.is_unsigned;
    const auto a = static_cast<uint64_t>(left.value), b = static_cast<uint64_t>(right.value);
    const int64_t x = left.value, y = right.value;
    const bool divides = o == "/" || o == "%";
    if (divides && y == 0) lexer_.fail("a constant is divided by 0");
    if (divides && !is_unsigned && y == -1)  // which overflows for the smallest number
      return {.value = o == "/" ? static_cast<int64_t>(0 - a) : 0};
    const auto result = [&](uint64_t bits) {
      return Constant{.value = static_cast<int64_t>(bits), .is_unsigned = is_unsigned};
    };
    if (o == "+") return result(a + b);
    if (o == "-") return result(a - b);
    if (o == "*") return result(a * b);
    if (o == "/") return result(is_unsigned ? a / b : static_cast<uint64_t>(x / y));
    if (o == "%") return result(is_unsigned ? a % b : static_cast<uint64_t>(x % y));
    if (o == "&") return result(a & b);
    if (o == "|") return result(a | b);
    if (o == "^") return result(a ^ b);
    const auto shift = [&](uint64_t bits) {
      return Constant{.value = static_cast<int64_t>(bits), .is_unsigned = left.is_unsigned};
    };
    if (o == "<<") return shift(b > 63 ? 0 : a << b);
    if (o == ">>" && left.is_unsigned) return shift(b > 63 ? 0 : a >> b);
    if (o == ">>") return shift(static_cast<uint64_t>(x >> std::min<uint64_t>(b, 63)));
    if (o == "==") return {.value = a == b};
    if (o == "!=") return {.value = a != b};
    if (o == "&&") return {.value = a != 0 && b != 0};
    if (o == "||") return {.value = a != 0 || b != 0};
    if (o == "<") return {.value = is_unsigned ? a < b : x < y};
    if (o == ">") return {.value = is_unsigned ? a > b : x > y};
    if (o == "<=") return {.value = is_unsigned ? a <= b : x <= y};
    return {.value = is_unsigned ? a >= b : x >= y};
  }

  static double real(const Constant& c) {
    if (!c.is_real)
      return c.is_unsigned ? static_cast<double>(static_cast<uint64_t>(c.value)) : static_cast<double>(c.value);
    return c.single ? double{std::bit_cast<float>(static_cast<uint32_t>(c.value))} : std::bit_cast<double>(c.value);
  }

  Constant apply_real(std::string_view o, const Constant& left, const Constant& right) {
    const double x = real(left), y = real(right);
    const auto result = [](double value) { return Constant{.value = std::bit_cast<int64_t>(value), .is_real = true}; };
    if (o == "+") return result(x + y);
    if (o == "-") return result(x - y);
    if (o == "*") return result(x * y);
    if (o == "/") return result(x / y);
    lexer_.fail(cat("operator ", o, " is applied to a real number"));
  }

  Constant hex_bits(size_t digits) {
    uint64_t bits = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int digit = hex(lexer_.raw());
      if (digit < 0) lexer_.fail(cat("expected ", digits, " hexadecimal digits"));
      bits = bits << 4 | static_cast<uint64_t>(digit);
      lexer_.advance();
    }
    return {.value = static_cast<int64_t>(bits), .is_real = true, .single = digits == 8};
  }

  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  Constant integer(unsigned base) {
    uint64_t bits = 0;
    bool any = false, overflow = false;
    for (int digit; (digit = hex(lexer_.raw())) >= 0 && static_cast<unsigned>(digit) < base; lexer_.advance()) {
      overflow |= bits > (UINT64_MAX - static_cast<uint64_t>(digit)) / base;
      bits = bits * base + static_cast<uint64_t>(digit);
      any = true;
    }
    if (!any && base != 8) lexer_.fail("expected digits");  // an octal 0 is only the prefix
    if (overflow) lexer_.fail("an integer of more than 64 bits");
    const bool suffix = lexer_.raw() == 'U' || lexer_.raw() == 'u';
    if (suffix) lexer_.advance();
    if (Lexer::is_word(lexer_.raw())) lexer_.fail("a number ends wrongly");
    return {.value = static_cast<int64_t>(bits), .is_unsigned = suffix || bits > INT64_MAX};
  }

  bool decimal_point_or_exponent() const {
    size_t n = 0;
    while (Lexer::is_digit(lexer_.raw(n))) ++n;
    const char c = lexer_.raw(n);
    return c == '.' || c == 'e' || c == 'E';
  }

  Constant literal() {
    lexer_.peek();
    if (lexer_.raw() == '0') {
      const char kind = lexer_.raw(1);
      const auto prefixed = [&](auto read) {
        lexer_.advance(2);
        return read();
      };
      if (kind == 'f' || kind == 'F') return prefixed([&] { return hex_bits(8); });
      if (kind == 'd' || kind == 'D') return prefixed([&] { return hex_bits(16); });
      if (kind == 'x' || kind == 'X') return prefixed([&] { return integer(16); });
      if (kind == 'b' || kind == 'B') return prefixed([&] { return integer(2); });
    }
    if (decimal_point_or_exponent()) {
      std::string digits;
      for (char c; c = lexer_.raw(), Lexer::is_digit(c) || c == '.' || c == 'e' || c == 'E' ||
                                         ((c == '+' || c == '-') && (digits.back() | 0x20) == 'e');
           lexer_.advance())
        digits += c;
      return {.value = std::bit_cast<int64_t>(std::strtod(digits.c_str(), nullptr)), .is_real = true};
    }
    if (lexer_.raw() != '0') return integer(10);
    lexer_.advance();
    return integer(8);
  }

  Lexer& lexer_;
  bool with_or_;
};

}  // namespace

Constant read_constant(Lexer& lexer, bool with_or) { return Reader(lexer, with_or).conditional(); }

int64_t read_integer(Lexer& lexer) {
  const Constant constant = read_constant(lexer);
  if (constant.is_real) lexer.fail("expected an integer");
  return constant.value;
}

}  // namespace emulator::ptx
