// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/text/jinja/value.h"

// Operators, members and brackets of templates, applied to values.

namespace weft::data::jinja {

/// The elements of a loop: a list, the keys of an object, the characters of a text.
List elements(const Value& x);
int64_t length(const Value& x);

/// Errors: another kind of value, which begin with `what`.
const std::string& text_of(const Value& x, const std::string& what);
int64_t integer_of(const Value& x, const std::string& what);

/// The member of an object, or null.
const Value* member(const Value& x, const std::string& key);

/// The arguments of a call by their names or places.
class Arguments {
 public:
  Arguments(std::string name, const Named& given, std::vector<std::string> names)
      : name_(std::move(name)), given_(given), names_(std::move(names)) {
    WEFT_CHECK(given.positional.size() <= names_.size(), name_, ": expected at most ", names_.size(),
               " arguments, got ", given.positional.size());
    for (const auto& [key, value] : given.named)
      WEFT_CHECK(std::find(names_.begin(), names_.end(), key) != names_.end(), name_,
                 ": an argument of this name is not supported: '", key, "'");
  }
  const Value* find(const std::string& name) const {
    const auto place = static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (place < given_.positional.size()) return &given_.positional[place];
    for (const auto& [key, value] : given_.named)
      if (key == name) return &value;
    return nullptr;
  }
  const Value& at(const std::string& name) const {
    const Value* const found = find(name);
    WEFT_CHECK(found, name_, ": expected the argument '", name, "', got none");
    return *found;
  }
  std::string text(const std::string& name) const { return text_of(at(name), name_); }

 private:
  std::string name_;
  const Named& given_;
  std::vector<std::string> names_;
};

/// The argument `chars`, if there is one.
inline std::optional<std::string> chars_of(const Arguments& a) {
  return a.find("chars") && !a.find("chars")->is_none() ? std::optional(a.text("chars")) : std::nullopt;
}

/// x.name: a member or a method.
Value attribute(const Value& x, const std::string& name);
/// x[key]
Value item(const Value& x, const Value& key);
/// x[begin:end:stride], where none stands for an absent one.
Value slice(const Value& x, const Value& begin, const Value& end, const Value& stride);

/// `what` in `where`.
bool contains(const Value& where, const Value& what);
/// Below, at or above 0 as a is before, equal to or after b.
int compare(const Value& a, const Value& b, const char* op);
/// a op b, of ==, !=, <, <=, >, >=, in, not in.
bool compared(const std::string& op, const Value& a, const Value& b);
/// a op b, of +, -, *, /, //, %. Errors: a result beyond 64 bits or kLongest.
Value arithmetic(const std::string& op, const Value& a, const Value& b);

}  // namespace weft::data::jinja
