// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "emulator/ptx/parse/constant.h"
#include "emulator/ptx/parse/parser.h"

namespace emulator::ptx {

namespace {

/// Reads everything but bodies.
class ModuleParser {
 public:
  explicit ModuleParser(Text& out) : out_(out), lexer_(out.text, 1) {}

  void parse() {
    out_.files.emplace_back();
    while (lexer_.peek() != '\0') {
      const std::string_view directive = lexer_.directive();
      if (!directive.empty())
        module_directive(directive);
      else if (!label())
        lexer_.fail("expected a directive");
    }
    apply_aliases();
  }

 private:
  /// Debug information has labels between its sections.
  bool label() { return !lexer_.word().empty() && lexer_.accept(':'); }

  void module_directive(std::string_view name) {
    Space space;
    if (name == "version") {
      version();
    } else if (name == "target") {
      target();
    } else if (name == "address_size") {
      if (read_integer(lexer_) != 64) lexer_.fail("only .address_size 64 is supported");
    } else if (name == "weak" || name == "common" || name == "linkonce") {
      weak_ = true;
    } else if (name == "visible") {
      // Visibility to others does not matter here.
    } else if (name == "extern") {
      external_ = true;
    } else if (name == "entry" || name == "func") {
      function(name == "entry");
      external_ = weak_ = false;
    } else if (name == "file") {
      file();
    } else if (name == "section" || name.starts_with("debug_")) {
      section(name);
    } else if (name == "pragma") {
      lexer_.skip_statement();
    } else if (name == "alias") {
      const std::string_view alias = lexer_.name("an alias");
      lexer_.expect(',');
      aliases_.emplace_back(alias, lexer_.name("a function"));
      lexer_.expect(';');
    } else if (name == "tex") {
      lexer_.fail("textures are not supported: .tex");
    } else if (space_of(name, space)) {
      for (Variable& variable : read_variables(lexer_, name, true)) {
        variable.is_external = external_;
        if (external_ || is_first(variable.name)) out_.variables.push_back(std::move(variable));
      }
      lexer_.expect(';');
      external_ = weak_ = false;
    } else if (name == "loc") {
      for (int i = 0; i < 3; ++i) read_integer(lexer_);
    } else {
      lexer_.fail(cat("unknown directive .", name));
    }
  }

  void version() {
    const int major = read_digits(lexer_);
    lexer_.expect('.');
    out_.version = major * 10 + read_digits(lexer_);
  }

  void target() {
    do {
      std::string_view name = lexer_.name("a target");
      if (!name.starts_with("sm_")) continue;  // texmode_unified, debug, …
      name.remove_prefix(3);
      int number = 0;
      while (!name.empty() && Lexer::is_digit(name.front()) && number < 1000) {
        number = number * 10 + (name.front() - '0');
        name.remove_prefix(1);
      }
      out_.target = number;
      out_.arch_specific = name == "a";
    } while (lexer_.accept(','));
  }

  void file() {
    const auto index = static_cast<size_t>(read_count(lexer_));
    if (index > 100000) lexer_.fail("a file's number is out of range");
    if (index >= out_.files.size()) out_.files.resize(index + 1);
    out_.files[index] = Lexer::one_line(lexer_.string());
    while (lexer_.accept(',')) read_integer(lexer_);  // time and size
  }

  void section(std::string_view name) {
    if (name == "section") lexer_.directive();
    if (lexer_.accept('{')) lexer_.braces();
  }

  void function(bool is_kernel) {
    Function f;
    f.is_kernel = is_kernel;
    while (lexer_.peek() == '.') attribute(lexer_.directive(), f);
    if (!is_kernel) f.results = read_parameters(lexer_);
    f.name = lexer_.name("a function's name");
    f.parameters = read_parameters(lexer_);
    while (lexer_.peek() == '.') attribute(lexer_.directive(), f);
    if (lexer_.accept('{')) {
      f.body_line = lexer_.line();
      f.body = lexer_.braces();
    } else {
      lexer_.expect(';');
    }
    add(std::move(f));
  }

  void attribute(std::string_view name, Function& f) {
    if (name == "maxntid") return sizes(f.max_threads);
    if (name == "reqntid") return sizes(f.required_threads);
    if (name == "reqnctapercluster") return sizes(f.cluster);
    if (name == "minnctapersm") return static_cast<void>(f.min_blocks = read_count(lexer_));
    if (name == "maxnreg") return static_cast<void>(f.max_registers = read_count(lexer_));
    if (name == "maxclusterrank") return static_cast<void>(f.max_cluster = read_count(lexer_));
    if (name == "explicitcluster") return static_cast<void>(f.explicit_cluster = true);
    if (name == "maxnctapersm" || name == "abi_preserve" || name == "abi_preserve_control")
      return static_cast<void>(read_count(lexer_));
    if (name == "noreturn" || name == "blocksareclusters") return;
    if (name == "pragma") return lexer_.skip_statement();
    if (name == "attribute") {
      lexer_.expect('(');
      while (!lexer_.accept(')')) {
        if (lexer_.peek() == '\0') lexer_.fail("expected ')'");
        if (lexer_.peek() == '(') {
          lexer_.accept('(');
          while (!lexer_.accept(')')) read_integer(lexer_), lexer_.accept(',');
        } else if (!lexer_.accept(',') && lexer_.directive().empty()) {
          lexer_.fail("expected an attribute");
        }
      }
      return;
    }
    lexer_.fail(cat("unknown attribute .", name, " of a function"));
  }

  void sizes(int (&out)[3]) {
    for (int& size : out) size = 1;
    size_t n = 0;
    do {
      if (n == 3) lexer_.fail("more than three sizes");
      out[n++] = read_count(lexer_);
    } while (lexer_.accept(','));
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    if (int64_t{out[0]} * out[1] > kMost || int64_t{out[0]} * out[1] * out[2] > kMost) lexer_.fail("a size is out of range");
  }

  /// A declaration gives way to its definition.
  void add(Function f) {
    const auto [known, is_new] = by_name_.emplace(f.name, out_.functions.size());
    if (f.body.data() != nullptr && !is_first(f.name)) return;
    if (is_new)
      out_.functions.push_back(std::move(f));
    else if (f.body.data() != nullptr)
      out_.functions[known->second] = std::move(f);
  }

  /// A linked text may define what is weak more than once: the first counts.
  bool is_first(std::string_view name) {
    const bool is_new = defined_.insert(name).second;
    if (!is_new && !weak_) lexer_.fail(cat(name, " is defined twice"));
    return is_new;
  }

  void apply_aliases() {
    for (const auto& [alias, name] : aliases_) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end()) lexer_.fail(cat(".alias of an unknown function ", name));
      Function copy = out_.functions[found->second];
      copy.name = alias;
      add(std::move(copy));
    }
  }

  Text& out_;
  Lexer lexer_;
  bool external_ = false, weak_ = false;
  std::unordered_map<std::string_view, size_t> by_name_;
  std::unordered_set<std::string_view> defined_;
  std::vector<std::pair<std::string_view, std::string_view>> aliases_;
};

}  // namespace

std::unique_ptr<Text> parse_module(std::string text) {
  auto out = std::make_unique<Text>();
  out->text = std::move(text);
  // nvcc ends embedded text with one or several zero bytes.
  while (!out->text.empty() && out->text.back() == '\0') out->text.pop_back();
  ModuleParser(*out).parse();
  return out;
}

}  // namespace emulator::ptx
