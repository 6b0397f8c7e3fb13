// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>

#include "apps/support/flags.h"
#include "apps/support/yaml_tree.h"
#include "core/text.h"
#include "data/draw.h"
#include "io/crc32c.h"

namespace weft::weft_sweep {
namespace {

constexpr size_t kMostPoints = 100'000, kLongestName = 100;
constexpr int kMostTries = 1000;  // to draw a new point

template <class... Parts>
[[noreturn]] void usage(const Parts&... parts) {
  throw train::UsageError(printable(str(parts...)));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, separator);) out.push_back(item);
  if (text.empty() || text.back() == separator) out.emplace_back();
  return out;
}

std::string draw_value(const Parameter& parameter, data::Draw& draw) {
  if (parameter.kind == Parameter::Kind::values)
    return parameter.values[static_cast<size_t>(draw.below(static_cast<int64_t>(parameter.values.size())))];
  if (parameter.kind == Parameter::Kind::whole) {
    const auto low = static_cast<int64_t>(parameter.low), high = static_cast<int64_t>(parameter.high);
    return fmt::format("{}", low + draw.below(high - low + 1));
  }
  const bool is_log = parameter.kind == Parameter::Kind::log_uniform;
  const double value = is_log ? std::exp(draw.uniform(std::log(parameter.low), std::log(parameter.high)))
                              : draw.uniform(parameter.low, parameter.high);
  return fmt::format("{:.4g}", std::clamp(value, parameter.low, parameter.high));  // four digits are enough
}

}  // namespace

Parameter parse_parameter(const std::string& text) {
  const size_t sign = text.find('=');
  if (sign == 0 || sign == std::string::npos || sign + 1 == text.size())
    usage("expected NAME=VALUE,VALUE,… or NAME=LOW..HIGH, got '", text, "'");
  Parameter parameter{.name = text.substr(0, sign)};
  std::string values = text.substr(sign + 1);
  const size_t dots = values.find("..");
  if (dots == std::string::npos) {
    parameter.values = split(values, ',');
  } else {
    parameter.kind = Parameter::Kind::uniform;
    for (const auto& [prefix, kind] :
         {std::pair("log:", Parameter::Kind::log_uniform), std::pair("int:", Parameter::Kind::whole)})
      if (values.starts_with(prefix)) {
        parameter.kind = kind;
        values = values.substr(4);
      }
    const size_t at = values.find("..");
    parameter.low = support::parse_number(parameter.name, values.substr(0, at));
    parameter.high = support::parse_number(parameter.name, values.substr(at + 2));
  }
  check_parameter(parameter, parameter.name);
  return parameter;
}

void check_parameter(const Parameter& parameter, const std::string& where) {
  using Kind = Parameter::Kind;
  if (parameter.kind == Kind::values) {
    if (parameter.values.empty()) usage(where, ": expected at least one value");
    std::set<std::string> seen;
    for (const std::string& value : parameter.values) {
      if (value.empty()) usage(where, ": expected values between commas, got an empty one");
      if (!seen.insert(value).second) usage(where, ": expected each value once, got '", value, "' twice");
    }
    return;
  }
  const std::string range = fmt::format("{}..{}", parameter.low, parameter.high);
  if (!(parameter.low < parameter.high)) usage(where, ": expected LOW..HIGH with LOW below HIGH, got ", range);
  if (parameter.kind == Kind::log_uniform && parameter.low <= 0)
    usage(where, ": expected a range above 0 for a log scale, got ", range);
  if (parameter.kind == Kind::whole &&
      (parameter.low != std::floor(parameter.low) || parameter.high != std::floor(parameter.high) ||
       std::max(-parameter.low, parameter.high) > 1e9))
    usage(where, ": expected whole numbers of at most 1e9, got ", range);
}

std::string name_of(const Point& point) {
  std::string whole, name;
  for (const auto& [key, value] : point) whole += (whole.empty() ? "" : ",") + key + '=' + value;
  for (const char c : whole) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("=,._+-").find(c) != std::string_view::npos;
    name += plain ? c : '_';
  }
  name = name.substr(0, kLongestName);
  if (name.find_first_not_of("-.", 0) != 0) name[0] = '_';  // no hidden folder, no flag
  return name == whole ? name : name + fmt::format("~{:08x}", crc32c(whole.data(), whole.size()));
}

std::vector<Point> grid(const std::vector<Parameter>& parameters) {
  size_t count = 1;
  for (const Parameter& parameter : parameters) {
    if (parameter.kind != Parameter::Kind::values)
      usage(parameter.name, ": expected a list of values for a grid, got a range. A random search takes ranges");
    count *= parameter.values.size();
    if (count > kMostPoints) usage("expected a grid of at most ", kMostPoints, " points, got more");
  }
  std::vector<Point> out(count);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i;
    for (size_t p = parameters.size(); p-- > 0;) {
      const std::vector<std::string>& values = parameters[p].values;
      out[i].insert(out[i].begin(), {parameters[p].name, values[rest % values.size()]});
      rest /= values.size();
    }
  }
  return out;
}

std::vector<Point> random_points(const std::vector<Parameter>& parameters, int64_t count, uint64_t seed) {
  std::vector<Point> out;
  std::set<Point> seen;
  data::Draw draw(seed, 0x5EE9);
  for (int tries = 0; static_cast<int64_t>(out.size()) < count && tries < kMostTries; ++tries) {
    Point point;
    for (const Parameter& parameter : parameters) point.emplace_back(parameter.name, draw_value(parameter, draw));
    if (!seen.insert(point).second) continue;
    out.push_back(std::move(point));
    tries = 0;
  }
  return out;
}

namespace {

using support::YamlNode;
using Kind = Parameter::Kind;

/// Reads one file; its errors name the line.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path.string()), tree_(support::parse_yaml(path)) {}

  SweepFile read() {
    if (tree_.root == nullptr) bad(1, "expected a sweep, got an empty file");
    SweepFile sweep;
    for (const auto& [key, value] : map_of(*tree_.root, "a sweep")) {
      if (key->text == "method")
        sweep.method = choice(*value, "method", {"grid", "random", "bayes"});
      else if (key->text == "metric")
        read_metric(*value, sweep);
      else if (key->text == "parameters")
        for (const auto& [name, about] : map_of(*value, "parameters"))
          sweep.parameters.push_back(parameter(name->text, *about));
      else if (key->text == "run_cap")
        sweep.run_cap = support::parse_integer(at(*value, "run_cap"), text_of(*value, "run_cap"));
      else if (key->text == "early_terminate")
        read_early_terminate(*value, sweep);
      else
        check_known(*key);
    }
    if (sweep.parameters.empty()) bad(tree_.root->line, "expected parameters, got none");
    return sweep;
  }

 private:
  template <class... Parts>
  [[noreturn]] void bad(int line, const Parts&... parts) const {
    throw train::UsageError(printable(str(path_, ":", line, ": ", parts...)));
  }
  std::string at(const YamlNode& node, const std::string& what) const { return str(path_, ":", node.line, ": ", what); }

  const std::vector<std::pair<const YamlNode*, const YamlNode*>>& map_of(const YamlNode& node,
                                                                         const std::string& what) const {
    if (node.kind != YamlNode::Kind::map) bad(node.line, what, ": expected keys with values");
    return node.entries;
  }
  const std::string& text_of(const YamlNode& node, const std::string& what) const {
    if (node.kind != YamlNode::Kind::scalar) bad(node.line, what, ": expected one value");
    return node.text;
  }
  std::string choice(const YamlNode& node, const std::string& what, const std::vector<std::string>& choices) const {
    const std::string& text = text_of(node, what);
    if (std::find(choices.begin(), choices.end(), text) == choices.end())
      bad(node.line, what, ": unknown value '", text, "'.", suggestion(text, choices));
    return text;
  }

  void check_known(const YamlNode& key) const {
    static const std::vector<std::string> ignored{"program", "project", "entity", "name", "description", "command"};
    if (std::find(ignored.begin(), ignored.end(), key.text) != ignored.end()) return;
    bad(key.line, "unknown key '", key.text, "'.",
        suggestion(key.text, {"method", "metric", "parameters", "run_cap", "early_terminate"}));
  }

  void read_early_terminate(const YamlNode& node, SweepFile& sweep) const {
    sweep.min_iter = 0;
    for (const auto& [key, value] : map_of(node, "early_terminate"))
      if (key->text == "type") {
        choice(*value, "type", {"hyperband"});
      } else if (key->text == "min_iter" || key->text == "eta") {
        int64_t& number = key->text == "eta" ? sweep.eta : sweep.min_iter;
        number = support::parse_integer(at(*value, key->text), text_of(*value, key->text));
        support::check_range(at(*value, key->text), static_cast<double>(number), value->text,
                             {.min = key->text == "eta" ? 2.0 : 1.0});
      } else {
        bad(key->line, "unknown key '", key->text, "'.", suggestion(key->text, {"type", "min_iter", "eta"}));
      }
    if (sweep.min_iter == 0) bad(node.line, "early_terminate: expected min_iter");
  }

  void read_metric(const YamlNode& node, SweepFile& sweep) const {
    for (const auto& [key, value] : map_of(node, "metric"))
      if (key->text == "name")
        sweep.metric = text_of(*value, "name");
      else if (key->text == "goal")
        sweep.goal = choice(*value, "goal", {"minimize", "maximize"}).substr(0, 3);
      else
        bad(key->line, "unknown key '", key->text, "'.", suggestion(key->text, {"name", "goal"}));
  }

  Parameter parameter(const std::string& name, const YamlNode& node) const {
    Parameter p{.name = name};
    std::string distribution;
    std::optional<std::string> low, high;
    for (const auto& [key, value] : map_of(node, name)) {
      if (key->text == "value")
        p.values = {text_of(*value, name)};
      else if (key->text == "values")
        p.values = list(*value, name);
      else if (key->text == "min")
        low = text_of(*value, name);
      else if (key->text == "max")
        high = text_of(*value, name);
      else if (key->text == "distribution")
        distribution =
            choice(*value, "distribution", {"uniform", "int_uniform", "log_uniform_values", "categorical", "constant"});
      else
        bad(key->line, "unknown key '", key->text, "'.",
            suggestion(key->text, {"value", "values", "min", "max", "distribution"}));
    }
    if (p.values.empty() != (low && high)) bad(node.line, name, ": expected value, values, or min and max");
    if (low && high) {
      p.low = support::parse_number(at(node, name), *low);
      p.high = support::parse_number(at(node, name), *high);
      const bool whole =
          low->find_first_of(".eE") == std::string::npos && high->find_first_of(".eE") == std::string::npos;
      p.kind = distribution == "log_uniform_values"                               ? Kind::log_uniform
               : distribution == "int_uniform" || (distribution.empty() && whole) ? Kind::whole
                                                                                  : Kind::uniform;
    }
    check_parameter(p, at(node, name));
    return p;
  }

  std::vector<std::string> list(const YamlNode& node, const std::string& name) const {
    if (node.kind != YamlNode::Kind::sequence) bad(node.line, name, ": expected a list of values");
    std::vector<std::string> out;
    for (const YamlNode* item : node.items) out.push_back(text_of(*item, name));
    return out;
  }

  std::string path_;
  support::YamlTree tree_;
};

}  // namespace

SweepFile read_sweep_file(const std::filesystem::path& path) { return Reader(path).read(); }

}  // namespace weft::weft_sweep
