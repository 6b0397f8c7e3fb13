// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

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

/// The nearest multiple of the step inside the range.
std::string rounded(const Parameter& parameter, double value) {
  double multiple = std::round(value / parameter.step);
  if (multiple * parameter.step < parameter.low) ++multiple;
  if (multiple * parameter.step > parameter.high) --multiple;
  return fmt::format("{:.10g}", multiple * parameter.step);
}

std::string draw_value(const Parameter& parameter, data::Draw& draw) {
  if (!parameter.weights.empty()) {
    double left = draw.uniform(0, 1);
    size_t i = 0;
    while (i + 1 < parameter.weights.size() && (left -= parameter.weights[i]) >= 0) ++i;
    return parameter.values[i];
  }
  if (parameter.kind == Parameter::Kind::values)
    return parameter.values[static_cast<size_t>(draw.below(static_cast<int64_t>(parameter.values.size())))];
  if (parameter.kind == Parameter::Kind::whole) {
    const auto low = static_cast<int64_t>(parameter.low), high = static_cast<int64_t>(parameter.high);
    return fmt::format("{}", low + draw.below(high - low + 1));
  }
  const bool is_log = parameter.kind == Parameter::Kind::log_uniform;
  const double value = is_log ? std::exp(draw.uniform(std::log(parameter.low), std::log(parameter.high)))
                              : draw.uniform(parameter.low, parameter.high);
  if (parameter.step > 0) return rounded(parameter, value);
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
  if (parameter.step > 0 && std::ceil(parameter.low / parameter.step) * parameter.step > parameter.high)
    usage(where, ": expected a multiple of ", parameter.step, " in the range, got ", range);
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

namespace {

/// The values of a range that has a few.
std::vector<std::string> values_of(const Parameter& parameter) {
  const double step = parameter.kind == Parameter::Kind::whole ? 1 : parameter.step;
  if (step == 0 || parameter.kind == Parameter::Kind::log_uniform)
    usage(parameter.name, ": expected a list of values for a grid, got a range. A random search takes ranges");
  const double first = std::ceil(parameter.low / step), last = std::floor(parameter.high / step);
  std::vector<std::string> out;
  for (size_t i = 0; first + static_cast<double>(i) <= last && i <= kMostPoints; ++i)
    out.push_back(fmt::format("{:.10g}", (first + static_cast<double>(i)) * step));
  return out;
}

}  // namespace

std::vector<Point> grid(const std::vector<Parameter>& given) {
  std::vector<Parameter> parameters = given;
  size_t count = 1;
  for (Parameter& parameter : parameters) {
    if (parameter.kind != Parameter::Kind::values) parameter.values = values_of(parameter);
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
    const YamlNode* command = nullptr;
    std::string program;
    std::vector<std::string> ignored;
    for (const auto& [key, value] : map_of(*tree_.root, "a sweep")) {
      if (key->text == "method")
        sweep.method = choice(*value, "method", {"grid", "random", "bayes"});
      else if (key->text == "metric")
        read_metric(*value, sweep);
      else if (key->text == "parameters")
        for (const auto& [name, about] : map_of(*value, "parameters"))
          sweep.parameters.push_back(parameter(name->text, *about, sweep));
      else if (key->text == "run_cap")
        sweep.run_cap = count(*value, "run_cap", 1);
      else if (key->text == "early_terminate")
        read_early_terminate(*value, sweep);
      else if (key->text == "command")
        command = value;
      else if (key->text == "program")
        program = text_of(*value, "program");
      else
        ignored.push_back(checked(*key));
    }
    if (sweep.parameters.empty()) bad(tree_.root->line, "expected parameters, got none");
    for (const Parameter& p : sweep.parameters)
      if (!p.weights.empty() && sweep.method != "random")
        bad(tree_.root->line, p.name, ": probabilities: expected method random, got ", sweep.method);
    if (command != nullptr || !program.empty()) sweep.command = command_of(command, program, sweep.parameters);
    if (!ignored.empty()) note(sweep, "passed over, as wandb's own: ", fmt::format("{}", fmt::join(ignored, ", ")));
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
    std::set<std::string> seen;
    for (const auto& [key, value] : node.entries)
      if (!seen.insert(key->text).second) bad(key->line, what, ": expected each key once, got '", key->text, "' twice");
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

  int64_t count(const YamlNode& node, const std::string& what, double least) const {
    const std::string& text = text_of(node, what);
    const int64_t number = support::parse_integer(at(node, what), text);
    support::check_range(at(node, what), static_cast<double>(number), text, {.min = least});
    return number;
  }
  template <class... Parts>
  void note(SweepFile& sweep, const Parts&... parts) const {
    sweep.notes.push_back(printable(str(path_, ": ", parts...)));
  }

  /// The name of a key that only wandb's service uses.
  const std::string& checked(const YamlNode& key) const {
    static const std::vector<std::string> ignored{"project", "entity", "name", "description", "controller", "job"};
    if (std::find(ignored.begin(), ignored.end(), key.text) != ignored.end()) return key.text;
    bad(key.line, "unknown key '", key.text, "'.",
        suggestion(key.text, {"method", "metric", "parameters", "run_cap", "early_terminate", "program", "command"}));
  }

  /// Runs are always stopped as under `strict: true`.
  void read_strict(const YamlNode& node, SweepFile& sweep) const {
    const std::string word = choice(node, "strict", {"true", "false", "True", "False"});
    if (word == "false" || word == "False")
      note(sweep, "early_terminate: strict false is passed over: all but the best 1/eta are stopped");
  }

  /// Hyperband's brackets have two forms: min_iter, min_iter eta, …; or max_iter / eta^s, …, max_iter / eta.
  void read_early_terminate(const YamlNode& node, SweepFile& sweep) const {
    static const std::vector<std::string> known{"type", "min_iter", "max_iter", "s", "eta", "strict"};
    int64_t brackets = 0;
    for (const auto& [key, value] : map_of(node, "early_terminate"))
      if (key->text == "type")
        choice(*value, "type", {"hyperband"});
      else if (key->text == "min_iter")
        sweep.min_iter = count(*value, "min_iter", 1);
      else if (key->text == "max_iter")
        sweep.max_iter = count(*value, "max_iter", 1);
      else if (key->text == "s")
        brackets = count(*value, "s", 1);
      else if (key->text == "eta")
        sweep.eta = count(*value, "eta", 2);
      else if (key->text == "strict")
        read_strict(*value, sweep);
      else
        bad(key->line, "unknown key '", key->text, "'.", suggestion(key->text, known));
    if (sweep.min_iter > 0 && sweep.max_iter > 0)
      bad(node.line, "early_terminate: expected min_iter, or max_iter with s, got both");
    if ((brackets > 0) != (sweep.max_iter > 0)) bad(node.line, "early_terminate: expected max_iter and s together");
    if (sweep.max_iter > 0) {
      sweep.min_iter = sweep.max_iter;
      for (int64_t i = 0; i < brackets; ++i) {
        if (sweep.min_iter % sweep.eta != 0)
          bad(node.line, "early_terminate: expected max_iter to be a multiple of eta^s, got ", sweep.max_iter, ", ",
              sweep.eta, " and ", brackets, ". Give min_iter instead");
        sweep.min_iter /= sweep.eta;
      }
    }
    if (sweep.min_iter == 0) bad(node.line, "early_terminate: expected min_iter, or max_iter with s");
  }

  void read_metric(const YamlNode& node, SweepFile& sweep) const {
    for (const auto& [key, value] : map_of(node, "metric"))
      if (key->text == "name")
        sweep.metric = text_of(*value, "name");
      else if (key->text == "goal")
        sweep.goal = choice(*value, "goal", {"minimize", "maximize"}).substr(0, 3);
      else if (key->text == "target")
        note(sweep, "metric: target is passed over: all points run, or as many as run_cap");
      else
        bad(key->line, "unknown key '", key->text, "'.", suggestion(key->text, {"name", "goal", "target"}));
  }

  /// The values that a distribution of wandb's draws between min and max, in the terms of Parameter.
  void set_range(Parameter& p, std::string distribution, const YamlNode& node, const std::string& low,
                 const std::string& high, SweepFile& sweep) const {
    const bool whole = low.find_first_of(".eE") == std::string::npos && high.find_first_of(".eE") == std::string::npos;
    if (distribution.empty()) distribution = whole ? "int_uniform" : "uniform";
    if (distribution.starts_with("q_"))
      distribution = distribution.substr(2);
    else if (p.step > 0)
      bad(node.line, p.name, ": q: expected a distribution q_…, got ", distribution);
    p.low = support::parse_number(at(node, p.name), low);
    p.high = support::parse_number(at(node, p.name), high);
    p.kind = distribution == "int_uniform" ? Kind::whole
             : distribution == "uniform"   ? Kind::uniform
                                           : Kind::log_uniform;
    if (distribution == "inv_log_uniform") p = Parameter{p.name, p.kind, {}, -p.high, -p.low, p.step, {}};
    if (!distribution.ends_with("log_uniform")) return;
    if (distribution == "log_uniform" && p.low > 0 && p.high <= 1)
      note(sweep, p.name, ": ", distribution, " draws from e^", low, " to e^", high,
           ". log_uniform_values takes the ends themselves");
    check_parameter(Parameter{p.name, Kind::uniform, {}, p.low, p.high}, at(node, p.name));
    p.low = std::exp(p.low);
    p.high = std::exp(p.high);
    if (!std::isfinite(p.high))
      bad(node.line, p.name, ": ", distribution, ": expected exponents of e of at most 709, got ", high);
  }

  Parameter parameter(const std::string& name, const YamlNode& node, SweepFile& sweep) const {
    static const std::vector<std::string> lists{"categorical", "categorical_w_probabilities", "constant"},
        ranges{"uniform",       "int_uniform",          "log_uniform",     "log_uniform_values",    "q_uniform",
               "q_log_uniform", "q_log_uniform_values", "inv_log_uniform", "inv_log_uniform_values"};
    std::vector<std::string> all = ranges;
    all.insert(all.end(), lists.begin(), lists.end());
    Parameter p{.name = name};
    std::string distribution;
    std::optional<std::string> low, high;
    const YamlNode* weights = nullptr;
    for (const auto& [key, value] : map_of(node, name)) {
      if ((key->text == "value" || key->text == "values") && !p.values.empty())
        bad(key->line, name, ": expected value or values, got both");
      if (key->text == "value")
        p.values = {text_of(*value, name)};
      else if (key->text == "values")
        p.values = list(*value, name);
      else if (key->text == "min")
        low = text_of(*value, name);
      else if (key->text == "max")
        high = text_of(*value, name);
      else if (key->text == "probabilities")
        weights = value;
      else if (key->text == "q")
        p.step = support::parse_number(at(*value, name + ": q"), text_of(*value, name));
      else if (key->text == "distribution")
        distribution = choice(*value, "distribution", all);
      else if (key->text == "parameters")
        bad(key->line, name, ": nested parameters: programs take flags. Write each as ", name,
            ".NAME beside the others");
      else
        bad(key->line, "unknown key '", key->text, "'.",
            suggestion(key->text, {"value", "values", "min", "max", "distribution", "probabilities", "q"}));
    }
    if (p.values.empty() != (low && high)) bad(node.line, name, ": expected value, values, or min and max");
    const std::vector<std::string>& fitting = low && high ? ranges : lists;
    if (!distribution.empty() && std::find(fitting.begin(), fitting.end(), distribution) == fitting.end())
      bad(node.line, name, ": distribution ", distribution, ": expected ", low ? "value or values" : "min and max");
    if (distribution.starts_with("q_") && p.step == 0) p.step = 1;
    if (p.step < 0) bad(node.line, name, ": q: expected a number above 0, got ", p.step);
    if (weights != nullptr) read_weights(*weights, p);
    if (low && high) set_range(p, distribution, node, *low, *high, sweep);
    check_parameter(p, at(node, name));
    return p;
  }

  void read_weights(const YamlNode& node, Parameter& p) const {
    double sum = 0;
    for (const std::string& text : list(node, p.name + ": probabilities")) {
      p.weights.push_back(support::parse_number(at(node, p.name + ": probabilities"), text));
      if (p.weights.back() < 0) bad(node.line, p.name, ": probabilities: expected numbers of at least 0, got ", text);
      sum += p.weights.back();
    }
    if (p.weights.size() != p.values.size())
      bad(node.line, p.name, ": probabilities: expected one for each of ", p.values.size(), " values, got ",
          p.weights.size());
    if (std::abs(sum - 1) > 1e-6) bad(node.line, p.name, ": probabilities: expected a sum of 1, got ", sum);
  }

  /// The words of `command`, whose default is the program (by python3 where it is a script of Python) and ${args}.
  std::vector<std::string> command_of(const YamlNode* node, const std::string& program,
                                      const std::vector<Parameter>& parameters) const {
    static const std::vector<std::pair<std::string, std::string>> styles{{"${args}", "--"},
                                                                         {"${args_no_hyphens}", ""},
                                                                         {"${args_append_hydra}", "+"},
                                                                         {"${args_override_hydra}", "++"},
                                                                         {"${args_no_boolean_flags}", "--"}};
    const int line = node == nullptr ? tree_.root->line : node->line;
    const std::vector<std::string> words =
        node == nullptr ? std::vector<std::string>{"${interpreter}", "${program}", "${args}"} : list(*node, "command");
    std::vector<std::string> out;
    bool has_values = false;
    for (const std::string& word : words) {
      const auto style = std::find_if(styles.begin(), styles.end(), [&](const auto& s) { return s.first == word; });
      if (style != styles.end()) {
        has_values = true;
        if (word == "${args_no_boolean_flags}") refuse_switches(line, parameters);
        for (const Parameter& p : parameters) out.push_back(style->second + p.name + "={" + p.name + "}");
      } else if (word == "${program}") {
        if (program.empty()) bad(line, "command: expected a program for ${program}, got none");
        out.push_back(program);
      } else if (word == "${interpreter}") {
        if (program.ends_with(".py")) out.emplace_back("python3");
      } else if (word == "${env}") {
        out.emplace_back("/usr/bin/env");
      } else {
        out.push_back(with_variables(line, word));
        for (const Parameter& p : parameters) has_values |= word.find('{' + p.name + '}') != std::string::npos;
      }
    }
    if (!has_values) bad(line, "command: expected ${args}, which becomes the values' flags");
    return out;
  }

  void refuse_switches(int line, const std::vector<Parameter>& parameters) const {
    for (const Parameter& p : parameters)
      for (const std::string& value : p.values)
        if (value == "true" || value == "false" || value == "True" || value == "False")
          bad(line, "command: ${args_no_boolean_flags}: ", p.name, " is ", value,
              " in some runs. Weft's programs take --", p.name, "=", value, ": write ${args}");
  }

  /// `${envvar:NAME}` is replaced; other macros are errors.
  std::string with_variables(int line, std::string word) const {
    static constexpr std::string_view kVariable = "${envvar:";
    for (size_t begin = 0; (begin = word.find("${", begin)) != std::string::npos;) {
      const size_t end = word.find('}', begin);
      if (word.compare(begin, kVariable.size(), kVariable) != 0 || end == std::string::npos)
        bad(line, "command: ", word.substr(begin),
            ": expected ${env}, ${interpreter}, ${program}, ${args}, ${args_no_hyphens} or ${envvar:NAME}");
      const std::string name = word.substr(begin + kVariable.size(), end - begin - kVariable.size());
      const char* const value = std::getenv(name.c_str());
      if (value == nullptr) bad(line, "command: the variable ", name, " is not set");
      word.replace(begin, end + 1 - begin, value);
      begin += std::string_view(value).size();  // a value that reads ${…} itself stays as it is
    }
    return word;
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
