// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/parse/parser_body.h"

#include "emulator/ptx/parse/constant.h"

namespace emulator::ptx {

bool Labels::define(std::string_view name, int statement) {
  return scopes_.back().labels.emplace(name, statement).second;
}

bool Labels::define_table(std::string_view name, int table) {
  return scopes_.back().tables.emplace(name, table).second;
}

void Labels::close(Function& function, Reference* missing) {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const Reference& r : scope.references) {
    const bool wants_table = r.statement >= 0 && function.code[static_cast<size_t>(r.statement)].op == "brx";
    const auto& names = wants_table ? scope.tables : scope.labels;
    if (const auto found = names.find(r.name); found != names.end()) {
      if (r.statement >= 0)
        function.code[static_cast<size_t>(r.statement)].target = found->second;
      else
        function.tables[static_cast<size_t>(r.table)][static_cast<size_t>(r.entry)] = found->second;
    } else if (!scopes_.empty()) {
      scopes_.back().references.push_back(r);
    } else if (missing->name.empty()) {
      *missing = r;
    }
  }
}

void BodyParser::open_scope() {
  constexpr int kDeepest = 1000;
  if (depth_ > kDeepest) lexer_.fail("braces nest too deeply");
  single_.open();
  ranges_.open();
  variables_.open();
  labels_.open();
  ++depth_;
}

bool BodyParser::close_scope() {
  Labels::Reference missing{};
  labels_.close(out_, &missing);
  if (!missing.name.empty())
    throw Fault(FaultCode::unsupported, cat("PTX line ", missing.line, ": no label ", missing.name, " in this scope"));
  variables_.close();
  ranges_.close();
  single_.close();
  return --depth_ == 0;
}

void BodyParser::parse() {
  out_.lines.emplace_back();
  // About 28 bytes of text are an instruction, and the vector's growth would copy them all.
  out_.code.reserve(out_.body.size() / 40);
  open_scope();
  while (true) {
    switch (lexer_.peek()) {
      case '\0':
        if (depth_ != 1) lexer_.fail("a '{' is never closed");
        close_scope();
        return;
      case '{':
        lexer_.advance();
        open_scope();
        break;
      case '}':
        lexer_.advance();
        if (depth_ == 1) lexer_.fail("a '}' too many");
        close_scope();
        break;
      case ';':
        lexer_.advance();
        break;
      case '.':
        directive(lexer_.directive());
        break;
      case '@':
        guarded();
        break;
      default:
        named();
    }
  }
}

void BodyParser::directive(std::string_view name) {
  if (name == "loc") return location();
  if (name == "reg") return registers();
  if (name == "pragma") {
    if (lexer_.peek() == '"' && lexer_.string() == "nounroll") {  // for the loop that begins here
      Statement& s = out_.code.emplace_back();
      s.op = "pragma";
      s.line = current_line_;
      s.ptx_line = lexer_.line();
    }
    return lexer_.skip_statement();
  }
  if (name == "file") lexer_.fail("expected .file outside of functions");
  if (name == "shared" || name == "local" || name == "param" || name == "global" || name == "const")
    return variables(name);
  lexer_.fail(cat("unknown directive .", name, " in a function"));
}

void BodyParser::registers() {
  int elements = 1;
  Type type = Type::none;
  while (lexer_.peek() == '.') {
    const std::string_view word = lexer_.directive();
    if (word == "v2" || word == "v4")
      elements = word[1] - '0';
    else
      type = type_of(word);
  }
  if (type == Type::none) lexer_.fail("unknown type of a register");
  constexpr int kMost = 1 << 22;  // more cannot be meant
  do {
    const std::string_view name = lexer_.name("a register's name");
    Registers found{.first = static_cast<int>(out_.registers.size()), .count = elements, .is_vector = elements > 1};
    const bool is_range = lexer_.accept('<');
    if (is_range) {
      found.count = read_digits(lexer_);
      lexer_.expect('>');
      if (elements > 1) lexer_.fail("a range of vector registers is not supported");
    }
    if (found.count > kMost - found.first) lexer_.fail("too many registers");
    out_.registers.resize(out_.registers.size() + static_cast<size_t>(found.count), {name, type});
    if (!(is_range ? ranges_ : single_).bind(name, found)) lexer_.fail(cat("register ", name, " is declared twice"));
  } while (lexer_.accept(','));
  lexer_.expect(';');
}

void BodyParser::variables(std::string_view space) {
  if (space == "global" || space == "const") lexer_.fail(cat("a .", space, " variable in a function"));
  for (Variable& variable : read_variables(lexer_, space, true)) {
    if (!variables_.bind(variable.name, static_cast<int>(out_.variables.size())))
      lexer_.fail(cat("variable ", variable.name, " is declared twice"));
    out_.variables.push_back(std::move(variable));
  }
  lexer_.expect(';');
}

void BodyParser::location() {
  const auto number = [&] { return static_cast<uint32_t>(read_count(lexer_)); };
  Line line{.ptx_line = lexer_.line()};
  line.file = number();
  line.line = number();
  const uint32_t column = number();
  while (lexer_.accept(',')) {
    const std::string_view word = lexer_.word();
    if (word == "function_name") {
      lexer_.name("a label");
      if (lexer_.peek() == '+') lexer_.advance(), read_count(lexer_);
    } else if (word == "inlined_at") {
      // The call's location has had a .loc of its own, which says where it was inlined.
      const uint32_t file = number(), at = number(), at_column = number();
      uint32_t& outer = places_[{file, at, at_column}];
      if (outer == 0) {
        outer = static_cast<uint32_t>(out_.lines.size());
        out_.lines.push_back({.file = file, .line = at, .ptx_line = line.ptx_line});
      }
      line.inlined_at = outer;
    } else {
      lexer_.fail("expected function_name or inlined_at");
    }
  }
  current_line_ = static_cast<uint32_t>(out_.lines.size());
  out_.lines.push_back(line);
  has_location_ = true;
  places_[{line.file, line.line, column}] = current_line_;
}

void BodyParser::guarded() {
  lexer_.expect('@');
  const bool negated = lexer_.accept('!');
  const int guard = predicate_register(lexer_.name("a predicate"));
  instruction(guard, negated);
}

void BodyParser::named() {
  const char first = lexer_.raw();
  if (!Lexer::is_word(first)) lexer_.fail("expected an instruction");
  Lexer before = lexer_;
  const std::string_view word = lexer_.word();
  if (lexer_.raw() == '.' || lexer_.peek() != ':') {
    lexer_ = before;
    return instruction(-1, false);
  }
  lexer_.expect(':');
  if (lexer_.peek() == '.') {
    Lexer label = lexer_;
    const std::string_view name = lexer_.directive();
    if (name == "branchtargets") return branch_targets(word);
    if (name == "callprototype" || name == "calltargets") return prototype(word, name == "calltargets");
    lexer_ = label;
  }
  if (!labels_.define(word, static_cast<int>(out_.code.size()))) lexer_.fail(cat("label ", word, " is defined twice"));
}

void BodyParser::branch_targets(std::string_view label) {
  const auto table = static_cast<int>(out_.tables.size());
  out_.tables.emplace_back();
  do {
    const std::string_view name = lexer_.name("a label");
    labels_.refer({name, -1, table, static_cast<int>(out_.tables.back().size()), lexer_.line()});
    out_.tables.back().push_back(-1);
  } while (lexer_.accept(','));
  lexer_.expect(';');
  if (!labels_.define_table(label, table)) lexer_.fail(cat("label ", label, " is defined twice"));
}

void BodyParser::prototype(std::string_view name, bool is_list) {
  Prototype& found = out_.prototypes.emplace_back();
  found.name = name;
  if (is_list) {
    found.target = lexer_.name("a function");
  } else {
    found.results = read_parameters(lexer_);
    lexer_.name("_");
    found.parameters = read_parameters(lexer_);
  }
  lexer_.skip_statement();
}

void BodyParser::instruction(int guard, bool guard_negated) {
  Statement s;
  s.guard = guard;
  s.guard_negated = guard_negated;
  s.op = lexer_.name("an instruction");
  if (!has_location_) {
    current_line_ = static_cast<uint32_t>(out_.lines.size());
    out_.lines.push_back({.ptx_line = lexer_.line()});
  }
  s.line = current_line_;
  s.ptx_line = lexer_.line();
  if (lexer_.raw() == '.') {
    s.mods.reserve(4);
    while (lexer_.raw() == '.') {
      lexer_.advance();
      s.mods.push_back(lexer_.modifier());
    }
  }
  if (!lexer_.accept(';')) {
    s.operands.reserve(4);
    do s.operands.push_back(operand(s));
    while (lexer_.accept(','));
    lexer_.expect(';');
  }
  const bool is_table = s.op == "brx";
  if (is_table || s.op == "bra") {
    const size_t at = is_table ? 1 : 0;
    if (s.operands.size() <= at || s.operands[at].kind != Operand::Kind::symbol) lexer_.fail("expected a label");
    labels_.refer({s.operands[at].name, static_cast<int>(out_.code.size()), -1, -1, lexer_.line()});
  }
  if (s.op == "call" && !s.operands.empty() && s.operands.back().kind == Operand::Kind::symbol) {
    for (size_t i = 0; i < out_.prototypes.size(); ++i)
      if (out_.prototypes[i].name == s.operands.back().name) s.target = static_cast<int>(i);
  }
  out_.code.push_back(std::move(s));
}

void parse_body(const Text&, Function& function) {
  if (function.parsed) return;
  function.registers.clear();
  function.variables.clear();
  function.code.clear();
  function.tables.clear();
  function.prototypes.clear();
  function.lines.clear();
  BodyParser(function).parse();
  function.parsed = true;
}

}  // namespace emulator::ptx
