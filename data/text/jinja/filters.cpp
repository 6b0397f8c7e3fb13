// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "data/text/jinja/operations.h"
#include "data/text/jinja/texts.h"

namespace weft::data::jinja {
namespace {

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

}  // namespace

const std::pair<Test, bool>& test_named(const std::string& name) {
  const auto found = tests().find(name);
  WEFT_CHECK(found != tests().end(), "the test '", printable(name, 60), "' is not supported");
  return found->second;
}

namespace {

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

Value range(const Named& given) {
  const Arguments a("range", given, {"start", "stop", "step"});
  const bool one = given.positional.size() == 1;
  const int64_t first = one ? 0 : integer_of(a.at("start"), "range");
  const int64_t last = integer_of(a.at(one ? "start" : "stop"), "range");
  const int64_t step = a.find("step") ? integer_of(*a.find("step"), "range") : 1;
  constexpr uint64_t kMost = 100'000;  // as Jinja's sandbox
  WEFT_CHECK(step != 0, "range: expected a step, got 0");
  if (step > 0 ? first >= last : first <= last) return Value(List());
  // Modulo 2^64, in which neither a distance nor a step overflows.
  const auto number = [](int64_t x) { return static_cast<uint64_t>(x); };
  const uint64_t distance = step > 0 ? number(last) - number(first) : number(first) - number(last);
  const uint64_t pace = step > 0 ? number(step) : 0 - number(step), count = (distance - 1) / pace + 1;
  WEFT_CHECK(count <= kMost, "range: expected at most ", kMost, " numbers, got ", count);
  List list;
  for (uint64_t i = 0; i < count; ++i) list.emplace_back(static_cast<int64_t>(number(first) + i * number(step)));
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

}  // namespace

Filter filter_named(const std::string& name) {
  const auto found = filters().find(name);
  WEFT_CHECK(found != filters().end(), "the filter '", printable(name, 60), "' is not supported");
  return found->second;
}

const std::map<std::string, Value>& global_functions() {
  static const std::map<std::string, Value> all{
      {"range", function(range)},
      {"namespace", function(make_namespace)},
      {"raise_exception", function([](const Named& given) -> Value { raise(given); })},
      {"strftime_now", function(strftime_now)},
  };
  return all;
}

}  // namespace weft::data::jinja
