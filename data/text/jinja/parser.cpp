// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/parser.h"

#include <algorithm>
#include <charconv>

#include "core/text.h"
#include "data/text/jinja/filters.h"
#include "data/text/jinja/operations.h"

namespace weft::data::jinja {
namespace {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block whole() {
    Block block = statements({});
    return block;
  }
  bool marks_generation() const { return marks_generation_; }
  int64_t line() const { return peek().line; }

 private:
  using Names = std::vector<std::string>;

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  bool is(const char* value, Token::Kind kind = Token::sign) const {
    return peek().kind == kind && peek().value == value;
  }
  bool is_name(const char* value) const { return is(value, Token::name); }
  bool take(const char* value, Token::Kind kind = Token::sign) {
    if (!is(value, kind)) return false;
    ++at_;
    return true;
  }
  static std::string shown(const Token& token) {
    switch (token.kind) {
      case Token::text:
        return "text";
      case Token::begin_print:
        return "'{{'";
      case Token::end_print:
        return "'}}'";
      case Token::begin_block:
        return "'{%'";
      case Token::end_block:
        return "'%}'";
      case Token::end:
        return "the end of the template";
      default:
        return "'" + printable(token.value, 40) + "'";
    }
  }
  void expect(const char* value, Token::Kind kind = Token::sign) {
    WEFT_CHECK(take(value, kind), "expected '", value, "', got ", shown(peek()));
  }
  void expect(Token::Kind kind, const char* what) {
    WEFT_CHECK(peek().kind == kind, "expected ", what, ", got ", shown(peek()));
    ++at_;
  }
  std::string take_name() {
    WEFT_CHECK(peek().kind == Token::name, "expected a name, got ", shown(peek()));
    return tokens_[at_++].value;
  }

  /// Nesting of statements and expressions.
  struct Level {
    explicit Level(int& depth) : depth_(depth) {
      WEFT_CHECK(++depth_ <= 4 * kDeepest, "expected at most ", 4 * kDeepest, " nested parts");
    }
    ~Level() { --depth_; }
    int& depth_;
  };

  /// Another operator of a tag: a row of them nests, too, when it is computed.
  void link() {
    constexpr int kMostLinks = 16 * kDeepest;
    WEFT_CHECK(++links_ <= kMostLinks, "expected at most ", kMostLinks, " operators in a tag");
  }

  /// Up to a block that begins with one of `ends`, whose name is taken.
  Block statements(const Names& ends) {
    const Level level(depth_);
    Block block;
    for (;;) {
      const Token token = peek();
      if (token.kind == Token::end) {
        WEFT_CHECK(ends.empty(), "expected ", joined(ends), ", got the end of the template");
        return block;
      }
      ++at_, links_ = 0;
      if (token.kind == Token::text) {
        block.push_back([text = token.value](Context& c) {
          c.write(text);
          return Flow::on;
        });
      } else if (token.kind == Token::begin_print) {
        Expression value = located(token.line, expression());
        expect(Token::end_print, "'}}'");
        block.push_back([value, line = token.line](Context& c) {
          const Value x = value(c);
          c.write(with_line(line, [&] { return to_text(x); }));
          return Flow::on;
        });
      } else {
        const std::string name = take_name();
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) {
          ended_ = name;
          return block;
        }
        block.push_back(statement(name, token.line));
      }
    }
  }
  void end_block() { expect(Token::end_block, "'%}'"); }

  static Expression located(int64_t line, Expression value) {
    return [line, value = std::move(value)](Context& c) { return with_line(line, [&] { return value(c); }); };
  }

  Statement statement(const std::string& name, int64_t line) {
    if (name == "if") return if_statement(line);
    if (name == "for") return for_statement(line);
    if (name == "set") return set_statement(line);
    if (name == "break" || name == "continue") {
      WEFT_CHECK(loops_ > 0, "expected ", name, " in a loop");
      end_block();
      const Flow flow = name == "break" ? Flow::stop : Flow::skip;
      return [flow](Context&) { return flow; };
    }
    if (name == "generation") {
      end_block();
      marks_generation_ = true;
      Block body = statements({"endgeneration"});
      end_block();
      return [body](Context& c) {
        const size_t begin = c.out.size();
        const Flow flow = run(body, c);
        c.generated.emplace_back(begin, c.out.size());
        return flow;
      };
    }
    fail("the statement '", printable(name, 60), "' is not supported");
  }

  Statement if_statement(int64_t line) {
    std::vector<std::pair<Expression, Block>> branches;
    Block otherwise;
    branches.emplace_back(located(line, expression()), Block());
    end_block();
    branches.back().second = statements({"elif", "else", "endif"});
    while (ended_ == "elif") {
      const int64_t where = peek().line;
      Expression condition = located(where, expression());
      end_block();
      Block body = statements({"elif", "else", "endif"});
      branches.emplace_back(std::move(condition), std::move(body));
    }
    if (ended_ == "else") {
      end_block();
      otherwise = statements({"endif"});
    }
    end_block();
    return [branches, otherwise](Context& c) {
      for (const auto& [condition, body] : branches)
        if (truth(condition(c))) return run(body, c);
      return run(otherwise, c);
    };
  }

  static void assign(Context& c, const Names& names, const Value& value) {
    if (names.size() == 1) {
      c.scopes.back()[names[0]] = value;
      return;
    }
    const List parts = elements(value);
    WEFT_CHECK(parts.size() == names.size(), "expected ", names.size(), " values for ", joined(names), ", got ",
               parts.size());
    for (size_t i = 0; i < names.size(); ++i) c.scopes.back()[names[i]] = parts[i];
  }

  Names targets() {
    const bool parentheses = take("(");
    Names names{take_name()};
    while (take(",")) names.push_back(take_name());
    if (parentheses) expect(")");
    for (const std::string& name : names) WEFT_CHECK(name != "loop", "expected a name, got 'loop'");
    return names;
  }

  Statement for_statement(int64_t line) {
    const Names names = targets();
    expect("in", Token::name);
    const Expression over = located(line, or_expression());
    Expression condition;
    if (take("if", Token::name)) condition = located(line, expression());
    WEFT_CHECK(!is_name("recursive"), "a recursive loop is not supported");
    end_block();
    ++loops_;
    const Block body = statements({"else", "endfor"});
    --loops_;
    Block otherwise;
    if (ended_ == "else") {
      end_block();
      otherwise = statements({"endfor"});
    }
    end_block();
    return [=](Context& c) {
      List all = with_line(line, [&] { return elements(over(c)); });
      if (condition) {
        List kept;
        for (const Value& one : all) {
          c.step();
          c.scopes.emplace_back();
          with_line(line, [&] { assign(c, names, one); });
          if (truth(condition(c))) kept.push_back(one);
          c.scopes.pop_back();
        }
        all = std::move(kept);
      }
      const auto count = static_cast<int64_t>(all.size());
      for (int64_t i = 0; i < count; ++i) {
        with_line(line, [&] { c.step(); });
        c.scopes.emplace_back();
        with_line(line, [&] { assign(c, names, all[static_cast<size_t>(i)]); });
        Dict loop{{"index", Value(i + 1)},
                  {"index0", Value(i)},
                  {"first", Value(i == 0)},
                  {"last", Value(i + 1 == count)},
                  {"length", Value(count)},
                  {"revindex", Value(count - i)},
                  {"revindex0", Value(count - i - 1)}};
        if (i > 0) loop.emplace_back("previtem", all[static_cast<size_t>(i - 1)]);
        if (i + 1 < count) loop.emplace_back("nextitem", all[static_cast<size_t>(i + 1)]);
        auto members = std::make_shared<Namespace>();
        members->members = std::move(loop);
        c.scopes.back()["loop"] = Value(std::move(members));
        const Flow flow = run(body, c);
        c.scopes.pop_back();
        if (flow == Flow::stop) break;
      }
      return count == 0 ? run(otherwise, c) : Flow::on;
    };
  }

  Statement set_statement(int64_t line) {
    if (peek().kind == Token::name && peek(1).value == "." && peek(1).kind == Token::sign) {
      const std::string name = take_name();
      expect(".");
      const std::string key = take_name();
      expect("=");
      const Expression value = located(line, tuple());
      end_block();
      return [=](Context& c) {
        const Value x = value(c), space = c.find(name);
        return with_line(line, [&] {
          const auto* const held = space.as<std::shared_ptr<Namespace>>();
          WEFT_CHECK(held && name != "loop", "expected a namespace before .", key, " =, got ", space.kind());
          WEFT_CHECK(!x.as<std::shared_ptr<Namespace>>(), "expected a member that is no namespace");
          for (auto& [known, old] : (*held)->members)
            if (known == key) {
              old = x;
              return Flow::on;
            }
          (*held)->members.emplace_back(key, x);
          return Flow::on;
        });
      };
    }
    const Names names = targets();
    if (peek().kind == Token::end_block && names.size() == 1) {
      end_block();
      const Block body = statements({"endset"});
      end_block();
      return [=](Context& c) {
        std::string outer;
        std::swap(outer, c.out);
        run(body, c);
        std::swap(outer, c.out);
        c.scopes.back()[names[0]] = Value(std::move(outer));
        return Flow::on;
      };
    }
    expect("=");
    const Expression value = located(line, tuple());
    end_block();
    return [=](Context& c) {
      const Value x = value(c);
      with_line(line, [&] { assign(c, names, x); });
      return Flow::on;
    };
  }

  // Expressions, from the loosest operator to the tightest.

  /// a, b without brackets is a list.
  Expression tuple() {
    Expression first = expression();
    if (!is(",")) return first;
    std::vector<Expression> parts{first};
    while (take(",")) parts.push_back(expression());
    return list_of(std::move(parts), true);
  }
  static Expression list_of(std::vector<Expression> parts, bool tuple) {
    return [parts = std::move(parts), tuple](Context& c) {
      List list;
      for (const Expression& part : parts) list.push_back(part(c));
      return tuple ? tuple_of(std::move(list)) : Value(std::move(list));
    };
  }

  Expression expression() {
    const Level level(depth_);
    Expression value = or_expression();
    while (take("if", Token::name)) {
      link();
      const Expression condition = or_expression();
      Expression other = [](Context&) { return Value(Undefined{"else"}); };
      if (take("else", Token::name)) other = expression();
      value = [value, condition, other](Context& c) { return truth(condition(c)) ? value(c) : other(c); };
    }
    return value;
  }
  Expression or_expression() {
    Expression left = and_expression();
    while (take("or", Token::name)) {
      link();
      left = [left, right = and_expression()](Context& c) {
        Value x = left(c);
        return truth(x) ? x : right(c);
      };
    }
    return left;
  }
  Expression and_expression() {
    Expression left = not_expression();
    while (take("and", Token::name)) {
      link();
      left = [left, right = not_expression()](Context& c) {
        Value x = left(c);
        return truth(x) ? right(c) : x;
      };
    }
    return left;
  }
  Expression not_expression() {
    const Level level(depth_);
    if (!take("not", Token::name)) return comparison();
    return [value = not_expression()](Context& c) { return Value(!truth(value(c))); };
  }
  std::string comparison_sign() {
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(op)) return op;
    if (take("in", Token::name)) return "in";
    if (is_name("not") && peek(1).kind == Token::name && peek(1).value == "in") {
      at_ += 2;
      return "not in";
    }
    return "";
  }
  Expression comparison() {
    Expression first = sum();
    std::vector<std::pair<std::string, Expression>> rest;
    for (std::string op = comparison_sign(); !op.empty(); op = comparison_sign()) rest.emplace_back(op, sum());
    if (rest.empty()) return first;
    return [first, rest](Context& c) {
      Value left = first(c);
      for (const auto& [op, next] : rest) {
        Value right = next(c);
        if (!compared(op, left, right)) return Value(false);
        left = std::move(right);
      }
      return Value(true);
    };
  }
  Expression binary(const std::vector<const char*>& signs, Expression (Parser::*tighter)()) {
    Expression left = (this->*tighter)();
    for (;;) {
      const auto found = std::find_if(signs.begin(), signs.end(), [&](const char* op) { return take(op); });
      if (found == signs.end()) return left;
      link();
      left = [op = std::string(*found), left, right = (this->*tighter)()](Context& c) {
        const Value x = left(c), y = right(c);
        if (op != "~") return arithmetic(op, x, y);
        std::string text = to_text(x) + to_text(y);
        WEFT_CHECK(text.size() <= kLongest, "~: the text has more than ", kLongest, " bytes");
        return Value(std::move(text));
      };
    }
  }
  Expression sum() { return binary({"+", "-"}, &Parser::concatenation); }
  Expression concatenation() { return binary({"~"}, &Parser::product); }
  Expression product() { return binary({"*", "//", "/", "%"}, &Parser::filtered); }

  Expression filtered() {
    Expression value = unary();
    for (;; link()) {
      if (take("|")) {
        value = filter(std::move(value));
      } else if (take("is", Token::name)) {
        value = test(std::move(value));
      } else {
        WEFT_CHECK(!is("**"), "the operator '**' is not supported");
        return value;
      }
    }
  }
  Expression unary() {
    const Level level(depth_);
    if (take("-"))
      return [value = unary()](Context& c) {
        const Value x = value(c);
        return x.as<double>() ? Value(-*x.as<double>()) : arithmetic("-", Value(int64_t{0}), x);
      };
    if (take("+")) return unary();
    return postfix(primary());
  }
  Expression filter(Expression value) {
    const std::string name = take_name();
    const Filter apply = filter_named(name);
    const auto given = take("(") ? arguments() : [](Context&) { return Named(); };
    return [value, given, apply](Context& c) { return apply(value(c), given(c)); };
  }
  Expression test(Expression value) {
    const bool negated = take("not", Token::name);
    const std::string name = take_name();
    const auto& [holds, has_argument] = test_named(name);
    Expression argument = [](Context&) { return Value(None{}); };
    if (has_argument) {
      argument = postfix(primary());
    } else if (take("(")) {
      expect(")");
    }
    return [value, argument, negated, holds = holds](Context& c) {
      return Value(holds(value(c), argument(c)) != negated);
    };
  }

  /// After the opening bracket of a call.
  std::function<Named(Context&)> arguments() {
    std::vector<std::pair<std::string, Expression>> all;
    while (!take(")")) {
      if (!all.empty()) {
        expect(",");
        if (take(")")) break;
      }
      std::string name;
      WEFT_CHECK(!is("*") && !is("**"), "arguments by '*' are not supported");
      if (peek().kind == Token::name && peek(1).kind == Token::sign && peek(1).value == "=") {
        name = take_name();
        expect("=");
      }
      WEFT_CHECK(!name.empty() || all.empty() || all.back().first.empty(), "expected named arguments after the others");
      all.emplace_back(name, expression());
    }
    return [all](Context& c) {
      Named given;
      for (const auto& [name, value] : all) {
        if (name.empty())
          given.positional.push_back(value(c));
        else
          given.named.emplace_back(name, value(c));
      }
      return given;
    };
  }

  Expression postfix(Expression value) {
    for (;; link()) {
      if (take(".")) {
        const std::string name = take_name();
        value = [value, name](Context& c) { return attribute(value(c), name); };
      } else if (take("[")) {
        value = subscript(std::move(value));
      } else if (take("(")) {
        value = [value, given = arguments()](Context& c) {
          const Value callee = value(c);
          const auto* const called = callee.as<std::shared_ptr<const Function>>();
          if (const auto* const missing = callee.as<Undefined>())
            fail("the function or method '", printable(missing->name, 60), "' is not supported");
          WEFT_CHECK(called, "expected a function before '(', got ", callee.kind());
          c.step();
          return (**called)(given(c));
        };
      } else {
        return value;
      }
    }
  }
  Expression subscript(Expression value) {
    const Expression none = [](Context&) { return Value(None{}); };
    Expression parts[3] = {none, none, none};
    int colons = 0;
    while (!take("]")) {
      if (take(":")) {
        WEFT_CHECK(++colons <= 2, "expected ']', got ':'");
        continue;
      }
      parts[colons] = expression();
      WEFT_CHECK(is("]") || is(":"), "expected ']', got ", shown(peek()));
    }
    if (colons > 0)
      return [value, begin = parts[0], end = parts[1], step = parts[2]](Context& c) {
        return slice(value(c), begin(c), end(c), step(c));
      };
    return [value, key = parts[0]](Context& c) { return item(value(c), key(c)); };
  }

  Expression primary() {
    const Token token = peek();
    ++at_;
    if (token.kind == Token::string) {
      std::string text = token.value;
      while (peek().kind == Token::string) text += tokens_[at_++].value;
      return [text](Context&) { return Value(text); };
    }
    if (token.kind == Token::integer) {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(token.value.data(), token.value.data() + token.value.size(), number);
      WEFT_CHECK(error == std::errc(), "expected a number of 64 bits, got ", printable(token.value, 40));
      return [number](Context&) { return Value(number); };
    }
    if (token.kind == Token::real) return [number = std::stod(token.value)](Context&) { return Value(number); };
    if (token.kind == Token::name) {
      const std::string& name = token.value;
      if (name == "true" || name == "True") return [](Context&) { return Value(true); };
      if (name == "false" || name == "False") return [](Context&) { return Value(false); };
      if (name == "none" || name == "None") return [](Context&) { return Value(None{}); };
      for (const char* word : {"if", "else", "and", "or", "not", "in", "is", "for"})
        WEFT_CHECK(name != word, "expected a value, got '", word, "'");
      return [name](Context& c) { return c.find(name); };
    }
    if (token.kind == Token::sign && token.value == "(") {
      std::vector<Expression> parts;
      bool is_list = is(")");
      while (!take(")")) {
        parts.push_back(expression());
        if (take(","))
          is_list = true;
        else
          WEFT_CHECK(is(")"), "expected ')', got ", shown(peek()));
      }
      return is_list ? list_of(std::move(parts), true) : parts[0];
    }
    if (token.kind == Token::sign && token.value == "[") {
      std::vector<Expression> parts;
      while (!take("]")) {
        parts.push_back(expression());
        if (!take(",")) WEFT_CHECK(is("]"), "expected ']', got ", shown(peek()));
      }
      return list_of(std::move(parts), false);
    }
    if (token.kind == Token::sign && token.value == "{") {
      std::vector<std::pair<Expression, Expression>> parts;
      while (!take("}")) {
        Expression key = expression();
        expect(":");
        parts.emplace_back(std::move(key), expression());
        if (!take(",")) WEFT_CHECK(is("}"), "expected '}', got ", shown(peek()));
      }
      return [parts](Context& c) {
        Dict dict;
        for (const auto& [key, value] : parts) {
          std::string name = text_of(key(c), "the key of an object");
          Value held = value(c);
          const auto known =
              std::find_if(dict.begin(), dict.end(), [&](const auto& entry) { return entry.first == name; });
          if (known != dict.end())
            known->second = std::move(held);
          else
            dict.emplace_back(std::move(name), std::move(held));
        }
        return Value(std::move(dict));
      };
    }
    fail("expected a value, got ", shown(token));
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0, loops_ = 0, links_ = 0;
  std::string ended_;
  bool marks_generation_ = false;
};

}  // namespace

Parsed parse(std::vector<Token> tokens) {
  Parser parser(std::move(tokens));
  try {
    Block body = parser.whole();
    return {std::move(body), parser.marks_generation()};
  } catch (const Error& error) {
    fail("line ", parser.line(), ": ", error.what());
  }
}

}  // namespace weft::data::jinja
