// SPDX-License-Identifier: Apache-2.0
#include "apps/weft_sweep/sweep_file.h"

#include <algorithm>
#include <optional>

#include "apps/support/flags.h"
#include "apps/support/yaml_tree.h"
#include "core/nearest.h"
#include "core/printable.h"

namespace weft::weft_sweep {
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
        sweep.method = choice(*value, "method", {"grid", "random"});
      else if (key->text == "metric")
        read_metric(*value, sweep);
      else if (key->text == "parameters")
        for (const auto& [name, about] : map_of(*value, "parameters"))
          sweep.parameters.push_back(parameter(name->text, *about));
      else if (key->text == "run_cap")
        sweep.run_cap = support::parse_integer(at(*value, "run_cap"), text_of(*value, "run_cap"));
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
    static const std::vector<std::string> ignored{"program",     "project", "entity",         "name",
                                                  "description", "command", "early_terminate"};
    if (std::find(ignored.begin(), ignored.end(), key.text) != ignored.end()) return;
    bad(key.line, "unknown key '", key.text, "'.", suggestion(key.text, {"method", "metric", "parameters", "run_cap"}));
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
