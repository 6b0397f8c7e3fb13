// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::data::jinja {

constexpr int kDeepest = 64;               // levels of values and expressions, whose handling is recursive
constexpr int64_t kMostSteps = 1'000'000;  // loop passes and elements of one rendering
constexpr size_t kLongest = size_t{1} << 26;

struct Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;
struct Named {  ///< the arguments of a call
  List positional;
  Dict named;
};
using Function = std::function<Value(const Named&)>;

struct Undefined {
  std::string name;  ///< as the template has it, for errors
};
struct None {};
/// A dict that assignments change: namespace().
struct Namespace {
  Dict members;
};

struct Value {
  std::variant<Undefined, None, bool, int64_t, double, std::string, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>, std::shared_ptr<const Function>>
      held;
  int depth = 0;
  bool tuple = false;  ///< a list that is written in round brackets

  Value() = default;
  template <class T>
  explicit(false) Value(T x) : held(std::move(x)) {}
  explicit Value(List list) {
    for (const Value& one : list) take_part(one);
    held = std::make_shared<const List>(std::move(list));
  }
  explicit Value(Dict dict) {
    for (const auto& [key, one] : dict) take_part(one);
    held = std::make_shared<const Dict>(std::move(dict));
  }
  void take_part(const Value& part) {
    WEFT_CHECK(!part.as<std::shared_ptr<Namespace>>(), "a list of namespaces is not supported");  // it could be a cycle
    depth = std::max(depth, part.depth + 1);
    WEFT_CHECK(depth <= kDeepest, "expected lists of at most ", kDeepest, " levels");
  }

  template <class T>
  const T* as() const {
    return std::get_if<T>(&held);
  }
  const List* list() const {
    const auto* const found = as<std::shared_ptr<const List>>();
    return found ? found->get() : nullptr;
  }
  const Dict* dict() const {
    if (const auto* const found = as<std::shared_ptr<const Dict>>()) return found->get();
    const auto* const space = as<std::shared_ptr<Namespace>>();
    return space ? &(*space)->members : nullptr;
  }
  const std::string* text() const { return as<std::string>(); }
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  bool is_integer() const { return as<int64_t>() != nullptr || as<bool>() != nullptr; }
  bool is_number() const { return is_integer() || as<double>() != nullptr; }
  int64_t integer() const { return as<bool>() ? static_cast<int64_t>(*as<bool>()) : *as<int64_t>(); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : *as<double>(); }

  std::string kind() const {
    if (const auto* const missing = as<Undefined>()) return "the undefined '" + printable(missing->name, 60) + "'";
    constexpr const char* kKinds[] = {"",       "none",   "a boolean", "a number",    "a number",
                                      "a text", "a list", "an object", "a namespace", "a function"};
    return kKinds[held.index()];
  }
};

Value tuple_of(List list);
Value function(Function f);
/// A method of x, which it holds: a chain of them counts as levels.
Value method_of(const Value& x, Function f);

bool truth(const Value& x);
bool equal(const Value& a, const Value& b);
/// As Python prints it; to_text(): a text as it is, nothing for the undefined.
std::string repr(const Value& x);
std::string to_text(const Value& x);

Value from_json(const nlohmann::ordered_json& json);
/// As Python's json.dumps(): ", " and ": ", or lines with `indent` spaces a level; indent -1: one line.
void write_json(const Value& x, int64_t indent, int64_t level, bool ascii, std::string& to);

}  // namespace weft::data::jinja
