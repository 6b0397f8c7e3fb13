// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "emulator/ptx/parse/constant.h"
#include "emulator/ptx/parse/parser.h"

namespace emulator::ptx {

namespace {

/// A variable with more bytes is a wrong text.
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

/// Reads `= …` into a variable, element by element.
class ContentReader {
 public:
  ContentReader(Lexer& lexer, Variable& variable)
      : lexer_(lexer), variable_(variable), width_(static_cast<size_t>(std::max(1, bytes_of(variable.type)))) {}

  void read() {
    const Lexer::Nested nested(lexer_);
    if (!lexer_.accept('{')) {
      if (lexer_.peek() == '"') return text();
      return element();
    }
    if (lexer_.accept('}')) return;
    do read();
    while (lexer_.accept(','));
    lexer_.expect('}');
  }

 private:
  void text() {
    for (const char c : lexer_.string()) variable_.content.push_back(static_cast<uint8_t>(c));
    variable_.content.push_back(0);
  }

  void element() {
    const char c = lexer_.peek();
    if (!begins_constant(c) && c != '(' && c != '!' && Lexer::is_word(c)) return address(width_, 0);
    const Constant constant = read_constant(lexer_);
    if (!constant.is_real && lexer_.peek() == '(') return masked(static_cast<uint64_t>(constant.value));
    append(bits(constant), width_);
  }

  uint64_t bits(const Constant& constant) const {
    const auto raw = static_cast<uint64_t>(constant.value);
    const bool is_f32 = variable_.type == Type::f32, is_f64 = variable_.type == Type::f64;
    if (!constant.is_real) {
      if (is_f32) return std::bit_cast<uint32_t>(static_cast<float>(constant.value));
      return is_f64 ? std::bit_cast<uint64_t>(static_cast<double>(constant.value)) : raw;
    }
    const bool narrow = is_f32 || (!is_f64 && width_ == 4);
    if (narrow && !constant.single) return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(raw)));
    if (is_f64 && constant.single)
      return std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(raw))});
    if (width_ < 4) lexer_.fail("a real number does not fit the variable's type");
    return raw;
  }

  /// `0xFF00(name)`: the bytes that the mask has, from the address of `name`.
  void masked(uint64_t mask) {
    lexer_.expect('(');
    const int shift = mask == 0 ? 0 : std::countr_zero(mask);
    const int ones = std::popcount(mask);
    if (mask == 0 || shift % 8 != 0 || ones != static_cast<int>(width_) * 8 ||
        mask >> shift != ~uint64_t{0} >> (64 - ones))
      lexer_.fail("a mask of an address that is not as wide as the variable's type");
    address(width_, static_cast<uint8_t>(shift));
    lexer_.expect(')');
  }

  void address(size_t bytes, uint8_t shift) {
    std::string_view name = lexer_.word();
    const bool generic = name == "generic" && lexer_.accept('(');
    if (generic) name = lexer_.name("a variable's name");
    uint64_t offset = 0;  // which wraps
    const auto read_offset = [&] {
      if (lexer_.peek() == '+' || lexer_.peek() == '-') offset += static_cast<uint64_t>(read_integer(lexer_));
    };
    read_offset();
    if (generic) {
      lexer_.expect(')');
      read_offset();
    }
    if (bytes > 8) lexer_.fail("an address in a variable of more than 64 bits");
    variable_.addresses.push_back(
        {variable_.content.size(), name, static_cast<int64_t>(offset), generic, static_cast<uint8_t>(bytes), shift});
    append(0, bytes);
  }

  void append(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) variable_.content.push_back(i < 8 ? static_cast<uint8_t>(value >> (8 * i)) : 0);
  }

  Lexer& lexer_;
  Variable& variable_;
  size_t width_;
};

/// `[4][8]` after a name. An array without a size takes the size of its content, or is external.
void read_dimensions(Lexer& lexer, Variable& variable, uint64_t element) {
  variable.bytes = element;
  while (lexer.accept('[')) {
    variable.is_array = true;
    if (lexer.accept(']')) {
      variable.bytes = 0;
      continue;
    }
    const auto count = static_cast<uint64_t>(read_integer(lexer));
    lexer.expect(']');
    if (count > kMostBytes || (count != 0 && variable.bytes > kMostBytes / count))
      lexer.fail("a variable is too large");
    variable.bytes *= count;
  }
}

}  // namespace

bool space_of(std::string_view text, Space& space) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {{"global", Space::global},
                                                            {"shared", Space::shared},
                                                            {"local", Space::local},
                                                            {"param", Space::param},
                                                            {"const", Space::constant}};
  for (const auto& [name, value] : kSpaces)
    if (name == text) {
      space = value;
      return true;
    }
  return false;
}

int read_digits(Lexer& lexer) {
  const std::string_view digits = lexer.word();
  int value = 0;
  for (const char c : digits) {
    if (!Lexer::is_digit(c) || value > 100000000) lexer.fail("expected a number");
    value = value * 10 + (c - '0');
  }
  if (digits.empty()) lexer.fail("expected a number");
  return value;
}

int read_count(Lexer& lexer) {
  const int64_t value = read_integer(lexer);
  if (value < 0 || value > std::numeric_limits<int>::max()) lexer.fail("a count is out of range");
  return static_cast<int>(value);
}

void read_content(Lexer& lexer, Variable& variable) {
  if (!lexer.accept('=')) return;
  ContentReader(lexer, variable).read();
  if (variable.bytes == 0) variable.bytes = variable.content.size();
  if (variable.content.size() > variable.bytes) lexer.fail(cat("too many values for variable ", variable.name));
}

std::vector<Variable> read_variables(Lexer& lexer, std::string_view space, bool many) {
  Variable common;
  if (space != "reg" && !space_of(space, common.space)) lexer.fail(cat("unknown state space .", space));
  // A device function may take registers: no space of memory at all.
  if (space == "reg") common.space = Space::generic;
  uint32_t vector = 1;
  while (lexer.peek() == '.') {
    const std::string_view word = lexer.directive();
    Space pointed;
    if (word == "align") {
      // After .ptr this is the alignment of the pointer's target, not of the parameter.
      common.align = static_cast<uint32_t>(read_count(lexer));
    } else if (word == "ptr") {
      while (lexer.peek() == '.') {
        const std::string_view of = lexer.directive();
        if (of == "align")
          read_count(lexer);
        else if (!space_of(of, pointed))
          lexer.fail(cat("unknown .ptr attribute .", of));
      }
    } else if (word == "attribute") {
      lexer.expect('(');
      do {
        const std::string_view attribute = lexer.directive();
        common.is_managed |= attribute == "managed";
        if (lexer.accept('(')) {
          do read_integer(lexer);
          while (lexer.accept(','));
          lexer.expect(')');
        }
      } while (lexer.accept(','));
      lexer.expect(')');
    } else if (word == "v2" || word == "v4" || word == "v8") {
      vector = static_cast<uint32_t>(word[1] - '0');
    } else if (word == "texref" || word == "samplerref" || word == "surfref") {
      common.type = Type::none;
      common.bytes = 8;
    } else if (common.type = type_of(word); common.type == Type::none) {
      lexer.fail(cat("unknown type or attribute .", word));
    }
  }
  const uint64_t element =
      common.type == Type::none ? common.bytes : static_cast<uint64_t>(std::max(1, bytes_of(common.type))) * vector;
  if (element == 0) lexer.fail("a variable without a type");
  common.align = std::max(common.align, static_cast<uint32_t>(element));
  if (!std::has_single_bit(common.align)) lexer.fail("an alignment that is no power of 2");

  std::vector<Variable> found;
  do {
    Variable variable = common;
    variable.name = lexer.name("a variable's name");
    read_dimensions(lexer, variable, element);
    read_content(lexer, variable);
    found.push_back(std::move(variable));
  } while (many && lexer.accept(','));
  return found;
}

std::vector<Variable> read_parameters(Lexer& lexer) {
  std::vector<Variable> found;
  if (!lexer.accept('(') || lexer.accept(')')) return found;
  do {
    const std::string_view space = lexer.directive();
    if (space.empty()) lexer.fail("expected a parameter");
    found.push_back(std::move(read_variables(lexer, space, false).front()));
  } while (lexer.accept(','));
  lexer.expect(')');
  return found;
}

}  // namespace emulator::ptx
