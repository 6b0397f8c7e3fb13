// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "core/text.h"
#include "core/utf8.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

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

bool truth(const Value& x) {
  if (const auto* const b = x.as<bool>()) return *b;
  if (x.is_number()) return x.number() != 0;
  if (x.text()) return !x.text()->empty();
  if (x.list()) return !x.list()->empty();
  if (x.as<std::shared_ptr<const Dict>>()) return !x.dict()->empty();
  return !x.is_undefined() && !x.is_none();
}

/// As Python's repr(): the shortest digits that read back.
std::string of_double(double x) {
  if (!std::isfinite(x)) return std::isnan(x) ? "nan" : x < 0 ? "-inf" : "inf";
  char digits[32];
  const auto scientific = std::to_chars(digits, digits + sizeof digits, x, std::chars_format::scientific);
  const std::string text(digits, scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(digits, digits + sizeof digits, x, std::chars_format::fixed);
  std::string plain(digits, fixed.ptr);
  if (plain.find('.') == std::string::npos) plain += ".0";
  return plain;
}

std::string repr(const Value& x);

std::string to_text(const Value& x) {
  if (x.text()) return *x.text();
  if (x.is_undefined()) return "";
  return repr(x);
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '\r') {
      result += "\\r";
    } else {
      if (c == quote || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + quote;
}

/// As Python prints it.
std::string repr(const Value& x) {
  if (x.is_undefined()) return "Undefined";
  if (x.text()) return quoted(*x.text());
  if (x.is_none()) return "None";
  if (const auto* const b = x.as<bool>()) return *b ? "True" : "False";
  if (const auto* const i = x.as<int64_t>()) return str(*i);
  if (const auto* const d = x.as<double>()) return of_double(*d);
  std::string result;
  const auto add = [&](const std::string& part) {
    WEFT_CHECK(result.size() + part.size() <= kLongest, "the text has more than ", kLongest, " bytes");
    result += (result.empty() ? "" : ", ") + part;
  };
  if (x.list()) {
    for (const Value& one : *x.list()) add(repr(one));
    if (x.tuple) return '(' + result + (x.list()->size() == 1 ? ",)" : ")");
    return '[' + result + ']';
  }
  WEFT_CHECK(x.as<std::shared_ptr<const Dict>>(), "expected a value that can be written, got ", x.kind());
  for (const auto& [key, one] : *x.dict()) add(quoted(key) + ": " + repr(one));
  return '{' + result + '}';
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
  }
  if (a.text() && b.text()) return *a.text() == *b.text();
  if (a.list() && b.list())
    return a.tuple == b.tuple &&
           std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(), equal);
  if (a.as<std::shared_ptr<const Dict>>() && b.as<std::shared_ptr<const Dict>>()) {
    if (a.dict()->size() != b.dict()->size()) return false;
    return std::all_of(a.dict()->begin(), a.dict()->end(), [&](const auto& entry) {
      return std::any_of(b.dict()->begin(), b.dict()->end(), [&](const auto& other) {
        return other.first == entry.first && equal(other.second, entry.second);
      });
    });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Value tuple_of(List list) {
  Value result(std::move(list));
  result.tuple = true;
  return result;
}

Value from_json(const nlohmann::ordered_json& json) {
  if (json.is_null()) return Value(None{});
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX))
    return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    List list;
    for (const auto& one : json) list.push_back(from_json(one));
    return Value(std::move(list));
  }
  Dict dict;
  for (const auto& [key, one] : json.items()) dict.emplace_back(key, from_json(one));
  return Value(std::move(dict));
}

/// As Python's json.dumps(): ", " and ": ", or lines with `indent` spaces a level; indent -1: one line.
void write_json(const Value& x, int64_t indent, int64_t level, bool ascii, std::string& to) {
  const auto text = [&](const std::string& s) {
    to += nlohmann::json(s).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  };
  if (x.text()) return text(*x.text());
  if (x.is_none()) {
    to += "null";
    return;
  }
  if (const auto* const b = x.as<bool>()) {
    to += *b ? "true" : "false";
    return;
  }
  if (x.is_number()) {
    to += repr(x);
    return;
  }
  WEFT_CHECK(x.list() || x.as<std::shared_ptr<const Dict>>(), "tojson: expected a value of JSON, got ", x.kind());
  const bool object = x.list() == nullptr;
  WEFT_CHECK(to.size() <= kLongest, "tojson: the text has more than ", kLongest, " bytes");
  const size_t count = object ? x.dict()->size() : x.list()->size();
  to += object ? '{' : '[';
  const auto line = [&](int64_t depth) {
    if (indent >= 0) to += '\n' + std::string(static_cast<size_t>(indent * depth), ' ');
  };
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) to += indent >= 0 ? "," : ", ";
    line(level + 1);
    if (object) {
      text((*x.dict())[i].first);
      to += ": ";
    }
    write_json(object ? (*x.dict())[i].second : (*x.list())[i], indent, level + 1, ascii, to);
  }
  if (count > 0) line(level);
  to += object ? '}' : ']';
}

// ---- Texts, by characters of UTF-8 as in Python --------------------------------------------------------------------

/// The bytes at which characters begin, and the end.
std::vector<size_t> characters(const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = 0; at < text.size();) {
    places.push_back(at);
    uint32_t number = 0;
    at += std::max<size_t>(decode_utf8(text, at, number), 1);
  }
  places.push_back(text.size());
  return places;
}

constexpr std::string_view kSpaces = " \t\n\r\v\f";

/// Python's str.isspace().
bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Without the characters of `set` at its sides; none: without white space.
std::string stripped(const std::string& text, const std::optional<std::string>& set, bool left, bool right) {
  const std::vector<size_t> places = characters(text);
  const auto goes = [&](size_t i) {
    const std::string one = text.substr(places[i], places[i + 1] - places[i]);
    uint32_t number = 0;
    return set ? set->find(one) != std::string::npos : decode_utf8(one, 0, number) > 0 && is_space(number);
  };
  size_t begin = 0, end = places.size() - 1;
  while (left && begin < end && goes(begin)) ++begin;
  while (right && end > begin && goes(end - 1)) --end;
  return text.substr(places[begin], places[end] - places[begin]);
}

std::string mapped(std::string text, bool upper) {
  for (char& c : text) {
    WEFT_CHECK(static_cast<uint8_t>(c) < 0x80, upper ? "upper" : "lower", ": letters beyond ASCII are not supported");
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string title(const std::string& text) {
  std::string result = mapped(text, false);
  for (size_t i = 0; i < result.size(); ++i)
    if (is_letter(result[i]) && (i == 0 || !is_letter(result[i - 1]))) result[i] = mapped({result[i]}, true)[0];
  return result;
}

/// Jinja's filter, other than Python's method: a word begins after white space, '-' or an opening bracket.
std::string words_titled(const std::string& text) {
  std::string result = mapped(text, false);
  for (size_t i = 0; i < result.size(); ++i)
    if (i == 0 || std::string_view(" \t\n\r\v\f-({[<").find(result[i - 1]) != std::string_view::npos)
      result[i] = mapped({result[i]}, true)[0];
  return result;
}

std::string capitalized(const std::string& text) {
  std::string result = mapped(text, false);
  if (!result.empty()) result[0] = mapped({result[0]}, true)[0];
  return result;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  WEFT_CHECK(!from.empty(), "replace: expected a text to replace, got an empty one");
  std::string result;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == std::string::npos) return result;
    result += to;
    WEFT_CHECK(result.size() <= kLongest, "replace: the result has more than ", kLongest, " bytes");
    at = found + from.size();
  }
}

List split(const std::string& text, const std::optional<std::string>& separator, int64_t most) {
  List parts;
  if (!separator) {  // runs of white space
    for (size_t at = 0;;) {
      const size_t begin = text.find_first_not_of(kSpaces, at);
      if (begin == std::string::npos) return parts;
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
        parts.emplace_back(stripped(text.substr(begin), std::nullopt, false, true));
        return parts;
      }
      at = std::min(text.find_first_of(kSpaces, begin), text.size());
      parts.emplace_back(text.substr(begin, at - begin));
    }
  }
  WEFT_CHECK(!separator->empty(), "split: expected a separator, got an empty one");
  for (size_t at = 0;;) {
    const size_t found =
        most >= 0 && static_cast<int64_t>(parts.size()) == most ? std::string::npos : text.find(*separator, at);
    parts.emplace_back(text.substr(at, found - at));
    if (found == std::string::npos) return parts;
    at = found + separator->size();
  }
}

// ---- Rendering ------------------------------------------------------------------------------------------------------

struct Context {
  std::vector<std::map<std::string, Value>> scopes;
  std::string out;
  std::vector<std::pair<size_t, size_t>> generated;
  int64_t steps = 0;

  Value find(const std::string& name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return Value(Undefined{name});
  }
  void step() { WEFT_CHECK(++steps <= kMostSteps, "the template takes more than ", kMostSteps, " steps"); }
  void write(const std::string& text) {
    WEFT_CHECK(out.size() + text.size() <= kLongest, "the text has more than ", kLongest, " bytes");
    out += text;
  }
};

enum class Flow : uint8_t { on, stop, skip };
using Expression = std::function<Value(Context&)>;
using Statement = std::function<Flow(Context&)>;
using Block = std::vector<Statement>;

Flow run(const Block& block, Context& context) {
  for (const Statement& statement : block)
    if (const Flow flow = statement(context); flow != Flow::on) return flow;
  return Flow::on;
}

/// The elements of a loop: a list, the keys of an object, the characters of a text.
List elements(const Value& x) {
  if (x.list()) return *x.list();
  List list;
  if (x.dict()) {
    for (const auto& [key, value] : *x.dict()) list.emplace_back(key);
  } else if (x.text()) {
    const std::vector<size_t> places = characters(*x.text());
    for (size_t i = 0; i + 1 < places.size(); ++i)
      list.emplace_back(x.text()->substr(places[i], places[i + 1] - places[i]));
  } else {
    WEFT_CHECK(x.is_undefined(), "expected a list, got ", x.kind());
  }
  return list;
}

int64_t length(const Value& x) {
  if (x.text()) return static_cast<int64_t>(characters(*x.text()).size()) - 1;
  WEFT_CHECK(x.list() || x.dict() || x.is_undefined(), "length: expected a list or text, got ", x.kind());
  return static_cast<int64_t>(x.list() ? x.list()->size() : x.dict() ? x.dict()->size() : 0);
}

const std::string& text_of(const Value& x, const std::string& what) {
  WEFT_CHECK(x.text(), what, ": expected a text, got ", x.kind());
  return *x.text();
}

int64_t integer_of(const Value& x, const std::string& what) {
  WEFT_CHECK(x.is_integer(), what, ": expected a whole number, got ", x.kind());
  return x.integer();
}

const Value* member(const Value& x, const std::string& key) {
  if (!x.dict()) return nullptr;
  for (const auto& [name, value] : *x.dict())
    if (name == key) return &value;
  return nullptr;
}

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

std::optional<std::string> chars_of(const Arguments& a) {
  return a.find("chars") && !a.find("chars")->is_none() ? std::optional(a.text("chars")) : std::nullopt;
}

Value function(Function f) { return Value(std::make_shared<const Function>(std::move(f))); }

/// A method of x, which it holds: a chain of them counts as levels.
Value method_of(const Value& x, Function f) {
  Value method = function(std::move(f));
  method.take_part(x);
  return method;
}

Value dict_method(const Value& x, const std::string& name) {
  if (name == "items" || name == "keys" || name == "values")
    return method_of(x, [x, name](const Named& given) {
      const Arguments none(name, given, {});
      List list;
      for (const auto& [key, value] : *x.dict()) {
        if (name == "items")
          list.push_back(tuple_of({Value(key), value}));
        else
          list.push_back(name == "keys" ? Value(key) : value);
      }
      return Value(std::move(list));
    });
  if (name == "get")
    return method_of(x, [x](const Named& given) {
      const Arguments a("get", given, {"key", "default"});
      if (const Value* const found = member(x, a.text("key"))) return *found;
      return a.find("default") ? *a.find("default") : Value(None{});
    });
  return Value(Undefined{name});
}

bool begins_or_ends(const std::string& text, const Value& with, bool begins) {
  if (with.list())
    return std::any_of(with.list()->begin(), with.list()->end(),
                       [&](const Value& one) { return begins_or_ends(text, one, begins); });
  const std::string& part = text_of(with, begins ? "startswith" : "endswith");
  return begins ? text.starts_with(part) : text.ends_with(part);
}

Value text_method(const std::string& x, const std::string& name) {
  using Method = Value (*)(const std::string&, const Named&);
  static const std::map<std::string, Method> methods{
      {"strip",
       [](const std::string& s, const Named& g) {
         const Arguments a("strip", g, {"chars"});
         return Value(stripped(s, chars_of(a), true, true));
       }},
      {"lstrip",
       [](const std::string& s, const Named& g) {
         const Arguments a("lstrip", g, {"chars"});
         return Value(stripped(s, chars_of(a), true, false));
       }},
      {"rstrip",
       [](const std::string& s, const Named& g) {
         const Arguments a("rstrip", g, {"chars"});
         return Value(stripped(s, chars_of(a), false, true));
       }},
      {"split",
       [](const std::string& s, const Named& g) {
         const Arguments a("split", g, {"sep", "maxsplit"});
         const bool by = a.find("sep") && !a.find("sep")->is_none();
         return Value(split(s, by ? std::optional(a.text("sep")) : std::nullopt,
                            a.find("maxsplit") ? integer_of(*a.find("maxsplit"), "split") : -1));
       }},
      {"splitlines",
       [](const std::string& s, const Named& g) {
         const Arguments a("splitlines", g, {});
         List lines;
         for (size_t at = 0; at < s.size();) {
           const size_t end = std::min(s.find_first_of("\n\r", at), s.size());
           lines.emplace_back(s.substr(at, end - at));
           at = end + (s.compare(end, 2, "\r\n") == 0 ? 2 : 1);
         }
         return Value(std::move(lines));
       }},
      {"startswith",
       [](const std::string& s, const Named& g) {
         return Value(begins_or_ends(s, Arguments("startswith", g, {"prefix"}).at("prefix"), true));
       }},
      {"endswith",
       [](const std::string& s, const Named& g) {
         return Value(begins_or_ends(s, Arguments("endswith", g, {"suffix"}).at("suffix"), false));
       }},
      {"upper", [](const std::string& s, const Named&) { return Value(mapped(s, true)); }},
      {"lower", [](const std::string& s, const Named&) { return Value(mapped(s, false)); }},
      {"title", [](const std::string& s, const Named&) { return Value(title(s)); }},
      {"capitalize", [](const std::string& s, const Named&) { return Value(capitalized(s)); }},
      {"replace",
       [](const std::string& s, const Named& g) {
         const Arguments a("replace", g, {"old", "new"});
         return Value(replaced(s, a.text("old"), a.text("new")));
       }},
      {"find",
       [](const std::string& s, const Named& g) {
         const size_t found = s.find(Arguments("find", g, {"sub"}).text("sub"));
         return Value(found == std::string::npos ? int64_t{-1} : length(Value(s.substr(0, found))));
       }},
      {"count",
       [](const std::string& s, const Named& g) {
         const std::string part = Arguments("count", g, {"sub"}).text("sub");
         WEFT_CHECK(!part.empty(), "count: expected a text, got an empty one");
         int64_t count = 0;
         for (size_t at = s.find(part); at != std::string::npos; at = s.find(part, at + part.size())) ++count;
         return Value(count);
       }},
      {"join", [](const std::string& s, const Named& g) {
         std::string all;
         const List parts = elements(Arguments("join", g, {"iterable"}).at("iterable"));
         for (size_t i = 0; i < parts.size(); ++i) all += (i > 0 ? s : "") + text_of(parts[i], "join");
         return Value(std::move(all));
       }}};
  const auto found = methods.find(name);
  if (found == methods.end()) return Value(Undefined{name});
  return function([x, method = found->second](const Named& given) { return method(x, given); });
}

/// x.name
Value attribute(const Value& x, const std::string& name) {
  if (x.as<std::shared_ptr<const Dict>>()) {
    if (Value method = dict_method(x, name); !method.is_undefined()) return method;
  }
  if (const Value* const found = member(x, name)) return *found;
  if (x.text()) return text_method(*x.text(), name);
  WEFT_CHECK(!x.is_undefined(), "expected an object before .", name, ", got ", x.kind());
  return Value(Undefined{name});
}

/// x[key]
Value item(const Value& x, const Value& key) {
  if (key.text()) {
    if (const Value* const found = member(x, *key.text())) return *found;
    WEFT_CHECK(!x.is_undefined(), "expected an object before ['", printable(*key.text(), 40), "'], got ", x.kind());
    return Value(Undefined{*key.text()});
  }
  WEFT_CHECK(!x.is_undefined(), "expected a list before [", printable(to_text(key), 40), "], got ", x.kind());
  if (!key.is_integer() || (!x.list() && !x.text())) return Value(Undefined{printable(to_text(key), 40)});
  const List all = x.list() ? List() : elements(x);
  const List& from = x.list() ? *x.list() : all;
  const auto count = static_cast<int64_t>(from.size());
  const int64_t i = key.integer() < 0 ? key.integer() + count : key.integer();
  return i >= 0 && i < count ? from[static_cast<size_t>(i)] : Value(Undefined{str("[", key.integer(), "]")});
}

Value slice(const Value& x, const Value& begin, const Value& end, const Value& stride) {
  WEFT_CHECK(x.list() || x.text(), "expected a list or text before [:], got ", x.kind());
  const List from = elements(x);
  const auto count = static_cast<int64_t>(from.size());
  const int64_t step =  // a longer one takes no other element
      stride.is_none() ? 1 : std::clamp(integer_of(stride, "[::]"), -count - 1, count + 1);
  WEFT_CHECK(step != 0, "[::]: expected a step, got 0");
  const int64_t least = step > 0 ? 0 : -1, most = step > 0 ? count : count - 1;
  const auto place = [&](const Value& given, int64_t other) {
    if (given.is_none()) return other;
    const int64_t i = integer_of(given, "[:]");
    return std::clamp(i < 0 ? i + count : i, least, most);
  };
  List part;
  const int64_t last = place(end, step > 0 ? count : -1);
  for (int64_t i = place(begin, step > 0 ? 0 : count - 1); step > 0 ? i < last : i > last; i += step)
    part.push_back(from[static_cast<size_t>(i)]);
  if (x.list()) return x.tuple ? tuple_of(std::move(part)) : Value(std::move(part));
  std::string text;
  for (const Value& one : part) text += *one.text();
  return Value(std::move(text));
}

bool contains(const Value& where, const Value& what) {
  if (where.text()) return where.text()->find(text_of(what, "in")) != std::string::npos;
  if (where.dict()) return what.text() && member(where, *what.text());
  const List all = elements(where);
  return std::any_of(all.begin(), all.end(), [&](const Value& one) { return equal(one, what); });
}

int compare(const Value& a, const Value& b, const char* op) {
  if (a.text() && b.text()) return a.text()->compare(*b.text());
  WEFT_CHECK(a.is_number() && b.is_number(), op, ": expected two numbers or texts, got ", a.kind(), " and ", b.kind());
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  return a.number() < b.number() ? -1 : a.number() > b.number();
}

bool compared(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  const int order = compare(a, b, op.c_str());
  return op == "<" ? order < 0 : op == ">" ? order > 0 : op == "<=" ? order <= 0 : order >= 0;
}

int64_t exact(bool overflow, const int64_t& value, const std::string& op) {
  WEFT_CHECK(!overflow, op, ": the result is beyond 64 bits");
  return value;
}

Value arithmetic(const std::string& op, const Value& a, const Value& b) {
  if (op == "+" && a.text() && b.text()) {
    WEFT_CHECK(a.text()->size() + b.text()->size() <= kLongest, "+: the text has more than ", kLongest, " bytes");
    return Value(*a.text() + *b.text());
  }
  if (op == "+" && a.list() && b.list()) {
    WEFT_CHECK(a.tuple == b.tuple, "+: expected two lists or two tuples");
    List both = *a.list();
    both.insert(both.end(), b.list()->begin(), b.list()->end());
    WEFT_CHECK(both.size() <= static_cast<size_t>(kMostSteps), "+: the list is too long");
    return a.tuple ? tuple_of(std::move(both)) : Value(std::move(both));
  }
  if (op == "*" && a.text() && b.is_integer()) {
    std::string all;
    const int64_t times = std::max<int64_t>(b.integer(), 0);
    WEFT_CHECK(a.text()->empty() || static_cast<uint64_t>(times) <= kLongest / a.text()->size(),
               "*: the text has more than ", kLongest, " bytes");
    for (int64_t i = 0; i < times && !a.text()->empty(); ++i) all += *a.text();
    return Value(std::move(all));
  }
  WEFT_CHECK(a.is_number() && b.is_number(), op, ": expected two numbers", op == "+" ? ", texts or lists" : "",
             ", got ", a.kind(), " and ", b.kind());
  WEFT_CHECK((op != "/" && op != "//" && op != "%") || b.number() != 0, op, ": expected another divisor than 0");
  if (!a.is_integer() || !b.is_integer() || op == "/") {
    const double x = a.number(), y = b.number();
    if (op == "+") return Value(x + y);
    if (op == "-") return Value(x - y);
    if (op == "*") return Value(x * y);
    if (op == "/") return Value(x / y);
    if (op == "//") return Value(std::floor(x / y));
    return Value(x - y * std::floor(x / y));
  }
  const int64_t x = a.integer(), y = b.integer();
  int64_t result = 0;
  if (op == "+") return Value(exact(__builtin_add_overflow(x, y, &result), result, op));
  if (op == "-") return Value(exact(__builtin_sub_overflow(x, y, &result), result, op));
  if (op == "*") return Value(exact(__builtin_mul_overflow(x, y, &result), result, op));
  if (y == -1)
    return op == "%" ? Value(int64_t{0}) : Value(exact(__builtin_sub_overflow(int64_t{0}, x, &result), result, op));
  const int64_t quotient = x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);  // towards minus infinity, as Python's
  return Value(op == "//" ? quotient : x - quotient * y);
}

// ---- Tests and filters
// -----------------------------------------------------------------------------------------------

using Test = bool (*)(const Value&, const Value&);

/// A test, and whether it has an argument.
const std::map<std::string, std::pair<Test, bool>>& tests() {
  static const std::map<std::string, std::pair<Test, bool>> all{
      {"defined", {[](const Value& x, const Value&) { return !x.is_undefined(); }, false}},
      {"undefined", {[](const Value& x, const Value&) { return x.is_undefined(); }, false}},
      {"none", {[](const Value& x, const Value&) { return x.is_none(); }, false}},
      {"string", {[](const Value& x, const Value&) { return x.text() != nullptr; }, false}},
      {"mapping", {[](const Value& x, const Value&) { return x.as<std::shared_ptr<const Dict>>() != nullptr; }, false}},
      {"iterable",
       {[](const Value& x, const Value&) {
          return x.list() || x.as<std::shared_ptr<const Dict>>() || x.text() || x.is_undefined();
        },
        false}},
      {"sequence",
       {[](const Value& x, const Value&) {
          return x.list() || x.as<std::shared_ptr<const Dict>>() || x.text() || x.is_undefined();
        },
        false}},
      {"number", {[](const Value& x, const Value&) { return x.is_number(); }, false}},
      {"integer", {[](const Value& x, const Value&) { return x.as<int64_t>() != nullptr; }, false}},
      {"boolean", {[](const Value& x, const Value&) { return x.as<bool>() != nullptr; }, false}},
      {"true", {[](const Value& x, const Value&) { return x.as<bool>() && *x.as<bool>(); }, false}},
      {"false", {[](const Value& x, const Value&) { return x.as<bool>() && !*x.as<bool>(); }, false}},
      {"odd", {[](const Value& x, const Value&) { return integer_of(x, "odd") % 2 != 0; }, false}},
      {"even", {[](const Value& x, const Value&) { return integer_of(x, "even") % 2 == 0; }, false}},
      {"divisibleby",
       {[](const Value& x, const Value& y) {
          return equal(arithmetic("%", Value(integer_of(x, "divisibleby")), Value(integer_of(y, "divisibleby"))),
                       Value(int64_t{0}));
        },
        true}},
      {"in", {[](const Value& x, const Value& y) { return contains(y, x); }, true}},
      {"eq", {[](const Value& x, const Value& y) { return equal(x, y); }, true}},
      {"equalto", {[](const Value& x, const Value& y) { return equal(x, y); }, true}},
      {"ne", {[](const Value& x, const Value& y) { return !equal(x, y); }, true}},
      {"gt", {[](const Value& x, const Value& y) { return compare(x, y, "gt") > 0; }, true}},
      {"ge", {[](const Value& x, const Value& y) { return compare(x, y, "ge") >= 0; }, true}},
      {"lt", {[](const Value& x, const Value& y) { return compare(x, y, "lt") < 0; }, true}},
      {"le", {[](const Value& x, const Value& y) { return compare(x, y, "le") <= 0; }, true}},
  };
  return all;
}

const std::pair<Test, bool>& test_named(const std::string& name) {
  const auto found = tests().find(name);
  WEFT_CHECK(found != tests().end(), "the test '", printable(name, 60), "' is not supported");
  return found->second;
}

/// selectattr(name), selectattr(name, test), selectattr(name, test, value), and the opposite.
Value selected(const Value& x, const Named& given, bool wanted) {
  const Arguments a(wanted ? "selectattr" : "rejectattr", given, {"attribute", "test", "value"});
  List kept;
  for (const Value& one : elements(x)) {
    const Value value = attribute(one, a.text("attribute"));
    const bool fits = a.find("test")
                          ? test_named(a.text("test")).first(value, a.find("value") ? *a.find("value") : Value(None{}))
                          : truth(value);
    if (fits == wanted) kept.push_back(one);
  }
  return Value(std::move(kept));
}

using Filter = Value (*)(const Value&, const Named&);

Value with_default(const Value& x, const Named& g) {
  const Arguments a("default", g, {"default_value", "boolean"});
  const bool replaces = x.is_undefined() || (a.find("boolean") && truth(*a.find("boolean")) && !truth(x));
  if (!replaces) return x;
  return a.find("default_value") ? *a.find("default_value") : Value(std::string());
}

Value to_length(const Value& x, const Named& g) {
  const Arguments none("length", g, {});
  return Value(length(x));
}

/// A digit string as int() reads it; else the default.
Value to_integer(const Value& x, const Named& g) {
  const Arguments a("int", g, {"default"});
  const Value other = a.find("default") ? *a.find("default") : Value(int64_t{0});
  WEFT_CHECK(!x.is_undefined(), "int: expected a value, got ", x.kind());
  if (x.is_integer()) return Value(x.integer());
  if (const auto* const d = x.as<double>()) return std::abs(*d) < 9e18 ? Value(static_cast<int64_t>(*d)) : other;
  if (!x.text()) return other;
  const std::string text = stripped(*x.text(), std::nullopt, true, true);
  const char *begin = text.data(), *const last = begin + text.size();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') ++begin;
  int64_t value = 0;
  const auto whole = std::from_chars(begin, last, value);
  if (whole.ec == std::errc() && whole.ptr == last) return Value(value);
  double real = 0;  // "42.7" is 42
  const auto found = std::from_chars(begin, last, real);
  return found.ec == std::errc() && found.ptr == last && std::abs(real) < 9e18 ? Value(static_cast<int64_t>(real))
                                                                               : other;
}

const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> known{
      {"trim",
       [](const Value& x, const Named& g) {
         const Arguments a("trim", g, {"chars"});
         return Value(stripped(to_text(x), chars_of(a), true, true));
       }},
      {"tojson",
       [](const Value& x, const Named& g) {
         const Arguments a("tojson", g, {"ensure_ascii", "indent"});
         const Value* const indent = a.find("indent");
         std::string text;
         const int64_t spaces = indent && !indent->is_none() ? integer_of(*indent, "tojson") : -1;
         WEFT_CHECK(spaces <= kDeepest, "tojson: expected an indent of at most ", kDeepest, ", got ", spaces);
         write_json(x, spaces, 0, a.find("ensure_ascii") && truth(*a.find("ensure_ascii")), text);
         return Value(std::move(text));
       }},
      {"length", to_length},
      {"count", to_length},
      {"default", with_default},
      {"d", with_default},
      {"upper", [](const Value& x, const Named&) { return Value(mapped(to_text(x), true)); }},
      {"lower", [](const Value& x, const Named&) { return Value(mapped(to_text(x), false)); }},
      {"title", [](const Value& x, const Named&) { return Value(words_titled(to_text(x))); }},
      {"capitalize", [](const Value& x, const Named&) { return Value(capitalized(to_text(x))); }},
      {"string", [](const Value& x, const Named&) { return Value(to_text(x)); }},
      {"int", to_integer},
      {"list", [](const Value& x, const Named&) { return Value(elements(x)); }},
      {"first",
       [](const Value& x, const Named&) {
         const List all = elements(x);
         return all.empty() ? Value(Undefined{"first"}) : all.front();
       }},
      {"last",
       [](const Value& x, const Named&) {
         const List all = elements(x);
         return all.empty() ? Value(Undefined{"last"}) : all.back();
       }},
      {"reverse",
       [](const Value& x, const Named&) {
         List all = elements(x);
         std::reverse(all.begin(), all.end());
         if (!x.text()) return Value(std::move(all));
         std::string text;
         for (const Value& one : all) text += *one.text();
         return Value(std::move(text));
       }},
      {"items",
       [](const Value& x, const Named&) {
         if (x.is_undefined()) return Value(List());
         WEFT_CHECK(x.dict(), "items: expected an object, got ", x.kind());
         List pairs;
         for (const auto& [key, value] : *x.dict()) pairs.push_back(tuple_of({Value(key), value}));
         return Value(std::move(pairs));
       }},
      {"join",
       [](const Value& x, const Named& g) {
         const Arguments a("join", g, {"d"});
         const std::string between = a.find("d") ? to_text(*a.find("d")) : "";
         std::string text;
         const List all = elements(x);
         for (size_t i = 0; i < all.size(); ++i) text += (i > 0 ? between : "") + to_text(all[i]);
         return Value(std::move(text));
       }},
      {"replace",
       [](const Value& x, const Named& g) {
         const Arguments a("replace", g, {"old", "new"});
         return Value(replaced(to_text(x), a.text("old"), a.text("new")));
       }},
      {"map",
       [](const Value& x, const Named& g) {
         WEFT_CHECK(g.positional.empty(), "map: expected attribute=, got another filter");
         const std::string name = Arguments("map", g, {"attribute"}).text("attribute");
         List values;
         for (const Value& one : elements(x)) values.push_back(attribute(one, name));
         return Value(std::move(values));
       }},
      {"selectattr", [](const Value& x, const Named& g) { return selected(x, g, true); }},
      {"rejectattr", [](const Value& x, const Named& g) { return selected(x, g, false); }},
  };
  return known;
}

// ---- Functions
// --------------------------------------------------------------------------------------------------------

Value range(const Named& given) {
  const Arguments a("range", given, {"start", "stop", "step"});
  const bool one = given.positional.size() == 1;
  const int64_t first = one ? 0 : integer_of(a.at("start"), "range");
  const int64_t last = integer_of(a.at(one ? "start" : "stop"), "range");
  const int64_t step = a.find("step") ? integer_of(*a.find("step"), "range") : 1;
  constexpr int64_t kMost = 100'000;  // as Jinja's sandbox
  WEFT_CHECK(step != 0, "range: expected a step, got 0");
  List list;
  for (int64_t i = first; step > 0 ? i < last : i > last; i += step) {
    list.emplace_back(i);
    WEFT_CHECK(list.size() <= static_cast<size_t>(kMost), "range: expected at most ", kMost, " numbers");
    if (step > 0 ? i > INT64_MAX - step : i < INT64_MIN - step) break;
  }
  return Value(std::move(list));
}

Value make_namespace(const Named& given) {
  WEFT_CHECK(given.positional.empty(), "namespace: expected named members");
  auto space = std::make_shared<Namespace>();
  for (const auto& [key, value] : given.named) {
    WEFT_CHECK(!value.as<std::shared_ptr<Namespace>>(), "namespace: expected members that are no namespaces");
    space->members.emplace_back(key, value);
  }
  return Value(std::move(space));
}

Value strftime_now(const Named& given) {
  const std::string format = Arguments("strftime_now", given, {"format"}).text("format");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[256];
  return Value(std::string(text, std::strftime(text, sizeof text, format.c_str(), &local)));
}

[[noreturn]] Value raise(const Named& given) {
  fail("the template refuses the conversation: ",
       printable(to_text(Arguments("raise_exception", given, {"message"}).at("message")), 300));
}

// ---- Parsing
// ----------------------------------------------------------------------------------------------------------

struct Token {
  enum Kind : uint8_t {
    text,
    begin_print,
    end_print,
    begin_block,
    end_block,
    name,
    string,
    integer,
    real,
    sign,
    end
  } kind;
  std::string value;
  int64_t line;
};

/// Cuts the source as Jinja's lexer with trim_blocks and lstrip_blocks.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.pop_back();
  }
  std::vector<Token> tokens() {
    while (at_ < source_.size()) {
      const size_t open = next_opening();
      std::string text = source_.substr(at_, open - at_);
      const size_t begin = at_;
      if (open == std::string::npos) {
        add_text(text);
        break;
      }
      const char kind = source_[open + 1], mark = open + 2 < source_.size() ? source_[open + 2] : ' ';
      if (mark == '-') {
        text = stripped(text, std::nullopt, false, true);
      } else if (kind != '{' && mark != '+') {  // lstrip_blocks
        const size_t content = text.find_last_not_of(" \t");
        const bool line_begins =
            content == std::string::npos ? begin == 0 || source_[begin - 1] == '\n' : text[content] == '\n';
        if (line_begins) text.resize(content == std::string::npos ? 0 : content + 1);
      }
      add_text(text);
      line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(begin),
                          source_.begin() + static_cast<std::ptrdiff_t>(open), '\n');
      at_ = open + 2 + (mark == '-' || mark == '+' ? 1 : 0);
      if (kind == '#')
        skip_comment();
      else
        inside(kind == '%');
    }
    tokens_.push_back({Token::end, "", line_});
    return std::move(tokens_);
  }
  int64_t line() const { return line_; }

 private:
  size_t next_opening() const {
    for (size_t i = source_.find('{', at_); i != std::string::npos; i = source_.find('{', i + 1))
      if (i + 1 < source_.size() && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return std::string::npos;
  }
  void add_text(const std::string& text) {
    if (!text.empty()) tokens_.push_back({Token::text, text, line_});
  }
  /// The white space after a closing tag.
  void after(bool strips, bool trims) {
    if (strips) {
      const size_t content = std::min(source_.find_first_not_of(kSpaces, at_), source_.size());
      line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                          source_.begin() + static_cast<std::ptrdiff_t>(content), '\n');
      at_ = content;
    } else if (trims && at_ < source_.size() && source_[at_] == '\n') {
      ++at_, ++line_;
    }
  }
  void skip_comment() {
    const size_t close = source_.find("#}", at_);
    WEFT_CHECK(close != std::string::npos, "expected the end of a comment, '#}'");
    line_ += std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                        source_.begin() + static_cast<std::ptrdiff_t>(close), '\n');
    const bool strips = close > at_ && source_[close - 1] == '-', keeps = close > at_ && source_[close - 1] == '+';
    at_ = close + 2;
    after(strips, !keeps);
  }
  void inside(bool block) {
    tokens_.push_back({block ? Token::begin_block : Token::begin_print, "", line_});
    const std::string close = block ? "%}" : "}}";
    int open = 0;  // brackets, as in {{ {'a': {}} }}
    for (;;) {
      while (at_ < source_.size() && kSpaces.find(source_[at_]) != std::string_view::npos)
        line_ += source_[at_++] == '\n';
      WEFT_CHECK(at_ < source_.size(), "expected '", close, "', got the end of the template");
      const char mark = source_[at_];
      const size_t skip = (mark == '-' || mark == '+') && source_.compare(at_ + 1, 2, close) == 0 ? 1 : 0;
      if (open == 0 && source_.compare(at_ + skip, 2, close) == 0) {
        at_ += 2 + skip;
        tokens_.push_back({block ? Token::end_block : Token::end_print, "", line_});
        return after(skip == 1 && mark == '-', block && !(skip == 1 && mark == '+'));
      }
      open += one_token();
    }
  }
  /// Reads a token; returns how the number of open brackets changes.
  int one_token() {
    const char c = source_[at_];
    const auto word = [](char x) { return is_letter(x) || x == '_' || (x >= '0' && x <= '9'); };
    const size_t begin = at_;
    if (c >= '0' && c <= '9') {
      while (at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9') ++at_;
      const bool real =
          at_ + 1 < source_.size() && source_[at_] == '.' && source_[at_ + 1] >= '0' && source_[at_ + 1] <= '9';
      if (real)
        for (++at_; at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '9';) ++at_;
      WEFT_CHECK(at_ == source_.size() || !word(source_[at_]), "expected a number, got '",
                 printable(source_.substr(begin, at_ + 1 - begin), 40), "'");
      tokens_.push_back({real ? Token::real : Token::integer, source_.substr(begin, at_ - begin), line_});
      return 0;
    }
    if (word(c)) {
      while (at_ < source_.size() && word(source_[at_])) ++at_;
      tokens_.push_back({Token::name, source_.substr(begin, at_ - begin), line_});
      return 0;
    }
    if (c == '"' || c == '\'') {
      read_string(c);
      return 0;
    }
    for (const char* two : {"==", "!=", "<=", ">=", "//", "**"})
      if (source_.compare(at_, 2, two) == 0) {
        at_ += 2;
        tokens_.push_back({Token::sign, two, line_});
        return 0;
      }
    WEFT_CHECK(std::string_view("+-*/%~<>=.,:|()[]{}").find(c) != std::string_view::npos, "unexpected '",
               printable(source_.substr(at_, 1)), "'");
    ++at_;
    tokens_.push_back({Token::sign, std::string(1, c), line_});
    return c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
  }
  void read_string(char quote) {
    std::string value;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      line_ += source_[at_] == '\n';
      if (source_[at_] != '\\') {
        value += source_[at_];
        continue;
      }
      WEFT_CHECK(++at_ < source_.size(), "expected the end of a text");
      const char c = source_[at_];
      constexpr std::string_view kEscapes = "ntr\\'\"";
      const size_t known = kEscapes.find(c);
      if (c == 'u') {
        WEFT_CHECK(at_ + 4 < source_.size(), "expected four digits after \\u");
        const auto json = nlohmann::json::parse("\"\\u" + source_.substr(at_ + 1, 4) + "\"", nullptr, false);
        WEFT_CHECK(json.is_string(), "expected a character's number after \\u, got '",
                   printable(source_.substr(at_ + 1, 4)), "'");
        value += json.get<std::string>();
        at_ += 4;
      } else if (known != std::string_view::npos) {
        value += "\n\t\r\\'\""[known];
      } else if (c != '\n') {
        WEFT_CHECK(std::string_view("01234567abfvxNU").find(c) == std::string_view::npos, "the escape '\\", c,
                   "' is not supported");
        value += '\\';  // as Python keeps it
        value += c;
      }
    }
    WEFT_CHECK(at_ < source_.size(), "expected the end of a text, ", quote);
    ++at_;
    tokens_.push_back({Token::string, std::move(value), line_});
  }

  std::string source_;
  size_t at_ = 0;
  int64_t line_ = 1;
  std::vector<Token> tokens_;
};

/// Adds the line to the text of an error of `body`.
auto with_line(int64_t line, auto&& body) {
  try {
    return body();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with("line ")) throw;
    fail("line ", line, ": ", text);
  }
}

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
    const auto found = filters().find(name);
    WEFT_CHECK(found != filters().end(), "the filter '", printable(name, 60), "' is not supported");
    const auto given = take("(") ? arguments() : [](Context&) { return Named(); };
    return [value, given, apply = found->second](Context& c) { return apply(value(c), given(c)); };
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
    return [value, argument, negated, holds = holds](Context& c) { return Value(holds(value(c), argument(c)) != negated); };
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

struct JinjaTemplate::Program {
  Block body;
};

JinjaTemplate::JinjaTemplate(std::string_view source, std::string what) : what_(std::move(what)) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {  // every line end is \n
    if (source[i] != '\r')
      text += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      text += '\n';
  }
  int64_t line = 1;
  try {
    Lexer lexer(text);
    std::vector<Token> tokens;
    try {
      tokens = lexer.tokens();
    } catch (...) {
      line = lexer.line();
      throw;
    }
    Parser parser(std::move(tokens));
    try {
      program_ = std::make_shared<const Program>(Program{parser.whole()});
    } catch (...) {
      line = parser.line();
      throw;
    }
    marks_generation_ = parser.marks_generation();
  } catch (const Error& error) {
    fail(what_, ": line ", line, ": ", error.what());
  }
}

JinjaTemplate::Rendered JinjaTemplate::render(const nlohmann::ordered_json& variables) const {
  Context context;
  context.scopes.emplace_back();
  try {
    for (const auto& [name, value] : variables.items()) context.scopes[0][name] = from_json(value);
    context.scopes[0]["range"] = function(range);
    context.scopes[0]["namespace"] = function(make_namespace);
    context.scopes[0]["raise_exception"] = function([](const Named& given) -> Value { raise(given); });
    context.scopes[0]["strftime_now"] = function(strftime_now);
    run(program_->body, context);
  } catch (const Error& error) {
    fail(what_, ": ", error.what());
  }
  return {std::move(context.out), std::move(context.generated)};
}

}  // namespace weft::data
