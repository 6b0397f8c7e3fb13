// SPDX-License-Identifier: Apache-2.0
#include "apps/support/flags.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>

#include "core/nearest.h"

namespace weft::support {
namespace {

template <class... Parts>
[[noreturn]] void usage(const Parts&... parts) {
  throw UsageError(str(parts...));
}

void check_range(const std::string& flag, double value, const std::string& text, Range range) {
  const bool low = range.above ? value > range.min : value >= range.min;
  if (low && value <= range.max) return;
  const std::string least = fmt::format("{} {}", range.above ? "above" : "at least", range.min);
  const std::string most = fmt::format("at most {}", range.max);
  const bool has_min = std::isfinite(range.min), has_max = std::isfinite(range.max);
  usage(flag, ": expected a value ", has_min ? least : "", has_min && has_max ? " and " : "", has_max ? most : "",
        ", got ", text);
}

/// `batch_size` and `batch-size` are the same key.
std::string dashes(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04X}", static_cast<int>(c));
    else
      out += c;
  }
  return out + "\"";
}

/// TOML wants a point or an exponent in a float; infinities are `inf`. Shortest text that reads back the same.
std::string toml_number(double value) {
  std::string text = fmt::format("{}", value);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string join(const std::vector<double>& values, const char* separator) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) out += (i ? separator : "") + fmt::format("{}", values[i]);
  return out;
}

/// What a value of a configuration file would be on the command line.
std::string as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* array = node.as_array()) {
    std::string out;
    for (const toml::node& item : *array) {
      if (item.is_array() || item.is_table()) usage("expected a flat list");
      out += (out.empty() ? "" : ",") + as_text(item);
    }
    return out;
  }
  usage("expected a text, number, true, false or list");
}

}  // namespace

struct Flags::Flag {
  std::string name;
  std::function<void(const std::string&)> set;  ///< throws UsageError
  std::function<std::string()> toml;
  bool given = false;
};

struct Flags::Parser {
  CLI::App app;
};

Flags::Flags(std::string program, std::string purpose) : program_(std::move(program)), parser_(new Parser) {
  parser_->app.description(std::move(purpose));
  parser_->app.name(program_);
  parser_->app.allow_extras();
  parser_->app
      .add_option_function<std::string>(
          "--config", [this](const std::string& path) { config_ = path; },
          "read flags from this TOML file; flags of the command line win")
      ->type_name("FILE.toml");
}

Flags::~Flags() = default;

Flags::Flag& Flags::make(const std::string& name) {
  WEFT_CHECK(std::none_of(flags_.begin(), flags_.end(), [&](const auto& f) { return f->name == name; }) &&
                 name != "config" && name != "help",
             "flags: expected each flag once, got a second --", name);
  flags_.push_back(std::make_unique<Flag>());
  flags_.back()->name = name;
  return *flags_.back();
}

namespace {

/// Registers a flag that takes a text, with its default in the help.
template <class Flag>
CLI::Option* option(CLI::App& app, Flag& flag, const std::string& help, const std::string& type,
                    const std::string& value) {
  auto* made = app.add_option_function<std::string>(
      "--" + flag.name,
      [&flag](const std::string& text) {
        flag.set(text);
        flag.given = true;
      },
      help);
  made->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->type_name(type);
  if (!value.empty()) made->default_str(value);
  return made;
}

}  // namespace

void Flags::add(const std::string& name, int64_t& variable, const std::string& help, Range range) {
  Flag& flag = make(name);
  flag.set = [&variable, name, range](const std::string& text) {
    const int64_t value = parse_integer("--" + name, text);
    check_range("--" + name, static_cast<double>(value), text, range);
    variable = value;
  };
  flag.toml = [&variable] { return fmt::format("{}", variable); };
  option(parser_->app, flag, help, "N", flag.toml());
}

void Flags::add(const std::string& name, int& variable, const std::string& help, Range range) {
  range.min = std::max<double>(range.min, std::numeric_limits<int>::min());
  range.max = std::min<double>(range.max, std::numeric_limits<int>::max());
  Flag& flag = make(name);
  flag.set = [&variable, name, range](const std::string& text) {
    const int64_t value = parse_integer("--" + name, text);
    check_range("--" + name, static_cast<double>(value), text, range);
    variable = static_cast<int>(value);
  };
  flag.toml = [&variable] { return fmt::format("{}", variable); };
  option(parser_->app, flag, help, "N", flag.toml());
}

void Flags::add(const std::string& name, double& variable, const std::string& help, Range range) {
  Flag& flag = make(name);
  flag.set = [&variable, name, range](const std::string& text) {
    const double value = parse_number("--" + name, text);
    check_range("--" + name, value, text, range);
    variable = value;
  };
  flag.toml = [&variable] { return toml_number(variable); };
  option(parser_->app, flag, help, "X", fmt::format("{}", variable));
}

void Flags::add(const std::string& name, std::string& variable, const std::string& help) {
  Flag& flag = make(name);
  flag.set = [&variable](const std::string& text) { variable = text; };
  flag.toml = [&variable] { return toml_text(variable); };
  option(parser_->app, flag, help, "TEXT", variable);
}

void Flags::add(const std::string& name, bool& variable, const std::string& help) {
  Flag& flag = make(name);
  flag.set = [&variable, name](const std::string& text) { variable = parse_switch("--" + name, text); };
  flag.toml = [&variable] { return variable ? "true" : "false"; };
  // A flag alone reads as "true"; `--name=false` gives its text.
  option(parser_->app, flag, help, "", variable ? "true" : "")->expected(0, 1);
}

void Flags::add(const std::string& name, std::vector<double>& variable, size_t count, const std::string& help) {
  Flag& flag = make(name);
  flag.set = [&variable, name, count](const std::string& text) { variable = parse_list("--" + name, text, count); };
  flag.toml = [&variable] { return "[" + join(variable, ", ") + "]"; };
  option(parser_->app, flag, help, count == 3 ? "R,G,B" : "X,X,…", join(variable, ","));
}

void Flags::add_choice(const std::string& name, std::string& variable, const std::vector<std::string>& choices,
                       const std::string& help) {
  Flag& flag = make(name);
  flag.set = [&variable, name, choices](const std::string& text) {
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      usage("--", name, ": unknown value '", text, "'.", suggestion(text, choices));
    variable = text;
  };
  flag.toml = [&variable] { return toml_text(variable); };
  std::string words;
  for (const std::string& choice : choices) words += (words.empty() ? "" : "|") + choice;
  option(parser_->app, flag, help, words, variable);
}

bool Flags::parse(int argc, const char* const* argv) {
  return parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

bool Flags::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    parser_->app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::cout << parser_->app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    usage(error.what());
  }
  const std::vector<std::string> extras = parser_->app.remaining();
  if (!extras.empty()) {
    const std::string word = extras.front().substr(0, extras.front().find('='));
    if (!word.starts_with("-")) usage("expected flags (--name value), got '", word, "'");
    std::vector<std::string> names{"--config", "--help"};
    for (const auto& flag : flags_) names.push_back("--" + flag->name);
    const auto near = nearest(dashes(word), names);
    usage("unknown flag ", word, near ? ". Did you mean " + *near + "?" : ".");
  }
  if (!config_.empty()) read_config(config_);
  return true;
}

void Flags::read_config(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) usage("--config: expected a file, got none at ", path.string());
  toml::table table;
  try {
    table = toml::parse_file(path.string());
  } catch (const toml::parse_error& error) {
    usage(path.string(), " line ", error.source().begin.line, ": not TOML: ", error.description());
  }
  for (const auto& [key, node] : table) {
    const std::string where = str(path.string(), " line ", node.source().begin.line, ": ");
    const std::string name = dashes(key.str());
    const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const auto& f) { return f->name == name; });
    if (found == flags_.end()) {
      std::vector<std::string> names;
      for (const auto& flag : flags_) names.push_back(flag->name);
      const auto near = nearest(name, names);
      usage(where, "unknown key '", key.str(), "'.", near ? " Did you mean '" + *near + "'?" : "");
    }
    if ((*found)->given) continue;  // the command line wins
    const auto* list = node.as_array();
    if (list != nullptr && list->empty()) continue;  // how toml() writes an unset list
    try {
      (*found)->set(as_text(node));
      (*found)->given = true;
    } catch (const UsageError& error) {
      usage(where, error.what());
    }
  }
}

bool Flags::given(const std::string& name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const auto& f) { return f->name == name; });
  WEFT_CHECK(found != flags_.end(), "flags: expected a flag of this program, got --", name);
  return (*found)->given;
}

std::string Flags::toml() const {
  std::string out;
  for (const auto& flag : flags_) out += flag->name + " = " + flag->toml() + "\n";
  return out;
}

double parse_number(std::string_view flag, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    usage(flag, ": expected a number, got '", text, "'");
  return value;
}

int64_t parse_integer(std::string_view flag, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    usage(flag, ": expected a whole number, got '", text, "'");
  return value;
}

bool parse_switch(std::string_view flag, const std::string& text) {
  for (const char* yes : {"", "true", "yes", "on", "1"})
    if (text == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (text == no) return false;
  usage(flag, ": expected true or false, got '", text, "'");
}

std::vector<double> parse_list(std::string_view flag, const std::string& text, size_t count) {
  std::vector<double> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, comma - begin);
    item.erase(0, item.find_first_not_of(' '));
    values.push_back(parse_number(flag, item));
    begin = comma + 1;
  }
  if (count != 0 && values.size() != count)
    usage(flag, ": expected ", count, " numbers between commas, got ", values.size(), " in '", text, "'");
  return values;
}

}  // namespace weft::support
