// SPDX-License-Identifier: Apache-2.0
#include "train/record/class_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "data/text/words.h"
#include "io/atomic_file.h"
#include "kernels/error.h"

namespace weft::train {
namespace {

using Names = std::vector<std::string>;

Names printable_names(Names names) {
  for (std::string& name : names) name = printable(name);
  return names;
}

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Sets without names count their classes.
bool are_numbers(const Names& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] != std::to_string(i)) return false;
  return true;
}

Names without(const Names& names, const Names& others) {
  Names rest;
  for (const std::string& name : names)
    if (!has(others, name)) rest.push_back("'" + name + "'");
  return rest;
}

/// `'Dog' of the data is not among them, and 'dog' is not in the data`, for the end of a sentence.
std::string difference(const Names& saved, const Names& set) {
  constexpr size_t kMost = 5;
  const Names unknown = without(set, saved), missing = without(saved, set);
  Names sides;
  if (!unknown.empty()) sides.push_back(str("only in the data: ", joined(unknown, kMost)));
  if (!missing.empty()) sides.push_back(str("only in the file: ", joined(missing, kMost)));
  std::string text = joined(sides);
  for (const std::string& one : unknown)
    for (const std::string& other : missing)
      if (const std::string what = data::sole_difference(one, other); !what.empty())
        return str(text, "; ", one, " and ", other, " differ in ", what, " alone");
  return text;
}

}  // namespace

std::string class_names_text(const Names& names) { return nlohmann::json(printable_names(names)).dump(); }

Names class_names_of(const std::map<std::string, std::string>& texts) {
  const auto found = texts.find(kClassNames);
  if (found == texts.end()) return {};
  const nlohmann::json json = nlohmann::json::parse(found->second, nullptr, false);
  const auto is_text = [](const nlohmann::json& one) { return one.is_string(); };
  return json.is_array() && std::all_of(json.begin(), json.end(), is_text) ? json.get<Names>() : Names();
}

void write_class_names(const std::filesystem::path& folder, const Names& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += str(i, '\t', printable(names[i]), '\n');
  write_atomically(folder / "classes.txt", text, "classes");
}

MatchedClasses match_classes(const std::string& file, const Names& saved, const Names& set, MatchClasses how) {
  const Names now = printable_names(set);
  if (saved == now) return {};
  if (saved.empty() || are_numbers(saved) != are_numbers(now)) {
    const char* unnamed = are_numbers(now) ? "the data" : file.c_str();
    return {{}, how == MatchClasses::start_from ? "" : str("matched by number: ", unnamed, " has no names of classes")};
  }
  const bool known = without(now, saved).empty();
  if (known && saved.size() == now.size()) {
    Names order;  // order of the set's own names
    for (const std::string& name : saved) order.push_back(set[std::find(now.begin(), now.end(), name) - now.begin()]);
    return {order, str("matched by name with those of ", file, ", which are in another order")};
  }
  if (known && how == MatchClasses::evaluate) {
    Names order = saved;
    for (size_t i = 0; i < now.size(); ++i) *std::find(order.begin(), order.end(), now[i]) = set[i];
    return {order, str("matched by name: the data has ", now.size(), " of the ", saved.size(), " classes of ", file)};
  }
  WEFT_CHECK(how == MatchClasses::start_from, "classes: expected those of ", file, ", got others (",
             difference(saved, now), "). ",
             how == MatchClasses::evaluate ? "Name the folders as the weights know the classes"
                                           : "--weights-strict no trains on from its weights with other classes");
  return {{}, str("other ones than those of ", file, " (", difference(saved, now), "): the classifier learns them")};
}

void require_same_classes(const std::string& file, const std::map<std::string, std::string>& texts, const Names& set) {
  const Names saved = class_names_of(texts), now = printable_names(set);
  if (saved.empty() || saved == now || are_numbers(saved) != are_numbers(now)) return;
  const std::string differ = difference(saved, now);
  fail("checkpoint ", file, ": expected its classes, in their order, got ",
       differ.empty() ? "another order in the data" : str("others (", differ, ")"),
       ". Name the folders as the checkpoint knows the classes, or begin a new run");
}

}  // namespace weft::train
