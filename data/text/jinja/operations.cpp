// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/operations.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "data/text/jinja/texts.h"

namespace weft::data::jinja {
namespace {

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

int64_t exact(bool overflow, const int64_t& value, const std::string& op) {
  WEFT_CHECK(!overflow, op, ": the result is beyond 64 bits");
  return value;
}

}  // namespace

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

Value attribute(const Value& x, const std::string& name) {
  if (x.as<std::shared_ptr<const Dict>>()) {
    if (Value method = dict_method(x, name); !method.is_undefined()) return method;
  }
  if (const Value* const found = member(x, name)) return *found;
  if (x.text()) return text_method(*x.text(), name);
  WEFT_CHECK(!x.is_undefined(), "expected an object before .", name, ", got ", x.kind());
  return Value(Undefined{name});
}

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

}  // namespace weft::data::jinja
