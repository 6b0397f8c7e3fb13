// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/parse/constant.h"
#include "emulator/ptx/parse/parser_body.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

Operand of_constant(const Constant& constant) {
  Operand o;
  o.kind = constant.is_real ? Kind::real : Kind::integer;
  o.single = constant.single;
  o.value = constant.value;
  return o;
}

}  // namespace

bool BodyParser::find_register(std::string_view name, Registers& found, int& index) const {
  // `rd12` is register 12 of the range `rd` or, unusual but legal, register 2 of the range `rd1`.
  size_t digits = 0;
  while (digits < name.size() && digits < 8 && Lexer::is_digit(name[name.size() - 1 - digits])) ++digits;
  const Scopes<Registers>::Binding* range = nullptr;
  for (; digits > 0 && range == nullptr; --digits) {
    const std::string_view number = name.substr(name.size() - digits);
    if (digits > 1 && number[0] == '0') continue;
    range = ranges_.find(name.substr(0, name.size() - digits));
    if (range == nullptr) continue;
    int value = 0;
    for (const char c : number) value = value * 10 + (c - '0');
    index = range->value.first + value;
    if (value >= range->value.count) range = nullptr;
  }
  const Scopes<Registers>::Binding* const single = single_.find(name);
  if (single != nullptr && (range == nullptr || single->depth > range->depth)) {
    found = single->value;
    index = found.first;
    return true;
  }
  if (range == nullptr) return false;
  found = range->value;
  return true;
}

int BodyParser::predicate_register(std::string_view name) {
  Registers registers;
  int index = 0;
  if (!find_register(name, registers, index) || out_.registers[static_cast<size_t>(index)].type != Type::pred)
    lexer_.fail(cat(name, " is no predicate"));
  out_.registers[static_cast<size_t>(index)].name = name;
  return index;
}

Operand BodyParser::register_operand(const Registers& registers, int index, std::string_view name) {
  Operand o;
  o.kind = Kind::reg;
  o.reg = index;
  std::string_view selector;
  if (lexer_.raw() == '.') {
    lexer_.advance();
    selector = lexer_.modifier();
  }
  if (!registers.is_vector) {
    out_.registers[static_cast<size_t>(index)].name = name;
    o.name = selector;
    return o;
  }
  if (selector.empty()) {
    o.kind = Kind::vector;
    o.reg = -1;
    for (int i = 0; i < registers.count; ++i) {
      o.parts.emplace_back().kind = Kind::reg;
      o.parts.back().reg = registers.first + i;
    }
    return o;
  }
  const size_t element =
      std::min(std::string_view("xyzw").find(selector[0]), std::string_view("rgba").find(selector[0]));
  if (selector.size() != 1 || element >= static_cast<size_t>(registers.count))
    lexer_.fail(cat("vector register ", name, " has no element .", selector));
  o.reg = index + static_cast<int>(element);
  return o;
}

void BodyParser::offset(Operand& o) {
  if (lexer_.peek() == '+')
    lexer_.advance();
  else if (lexer_.peek() != '-')
    return;
  o.value = static_cast<int64_t>(static_cast<uint64_t>(o.value) + static_cast<uint64_t>(read_integer(lexer_)));
}

Operand BodyParser::name_operand(std::string_view word) {
  Operand o;
  if (word == "_") {
    o.kind = Kind::sink;
    return o;
  }
  Registers registers;
  int index = 0;
  if (find_register(word, registers, index)) return register_operand(registers, index, word);
  if (const auto* variable = variables_.find(word)) {
    o.kind = Kind::symbol;
    o.reg = variable->value;
    o.name = word;
    return o;
  }
  if (word == "WARP_SZ") {
    o.kind = Kind::integer;
    o.value = 32;
    return o;
  }
  if (word[0] == '%') {
    const char* const begin = word.data() + 1;
    while (lexer_.raw() == '.') {
      lexer_.advance();
      lexer_.modifier();
    }
    o.kind = Kind::special;
    o.name = {begin, static_cast<size_t>(lexer_.cursor() - begin)};
    return o;
  }
  o.kind = Kind::symbol;
  o.name = word;
  return o;
}

Operand BodyParser::primary(const Statement& statement) {
  const Lexer::Nested nested(lexer_);
  const char c = lexer_.peek();
  Operand o;
  if (c == '{' || (c == '(' && statement.op == "call")) {
    lexer_.advance();
    o.kind = c == '{' ? Kind::vector : Kind::list;
    const char close = c == '{' ? '}' : ')';
    if (lexer_.accept(close)) return o;
    o.parts.reserve(4);
    do o.parts.push_back(operand(statement));
    while (lexer_.accept(','));
    lexer_.expect(close);
    return o;
  }
  if (c == '[') return address(statement);
  if (c == '!') {
    lexer_.advance();
    if (!Lexer::is_word(lexer_.peek()) || Lexer::is_digit(lexer_.raw())) {
      o.kind = Kind::integer;
      o.value = read_integer(lexer_) == 0;
      return o;
    }
    o = name_operand(lexer_.word());
    if (o.kind != Kind::reg) lexer_.fail("expected a predicate after '!'");
    o.negated = true;
    return o;
  }
  if (begins_constant(c) || c == '(') return of_constant(read_constant(lexer_, false));
  o = name_operand(lexer_.name("an operand"));
  if (o.kind == Kind::symbol) {
    offset(o);
  } else if (o.kind == Kind::integer && lexer_.peek() != ',' && lexer_.peek() != ';') {
    lexer_.fail("an expression that begins with WARP_SZ");
  }
  return o;
}

Operand BodyParser::operand(const Statement& statement) {
  Operand first = primary(statement);
  if (lexer_.peek() != '|') return first;
  lexer_.advance();
  Operand o;
  o.kind = Kind::pair;
  o.parts.reserve(2);
  o.parts.push_back(std::move(first));
  o.parts.push_back(primary(statement));
  return o;
}

Operand BodyParser::address(const Statement& statement) {
  lexer_.expect('[');
  Operand o;
  o.kind = Kind::address;
  o.parts.reserve(1);
  Operand base = primary(statement);
  if (base.kind == Kind::reg) offset(o);
  if (base.kind == Kind::symbol) std::swap(o.value, base.value);
  if (base.kind != Kind::reg && base.kind != Kind::symbol && base.kind != Kind::integer)
    lexer_.fail("an address begins with a register, a variable or an integer");
  o.parts.push_back(std::move(base));
  while (lexer_.accept(',')) o.parts.push_back(operand(statement));
  lexer_.expect(']');
  return o;
}

}  // namespace emulator::ptx
