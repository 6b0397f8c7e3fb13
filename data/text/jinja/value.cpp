// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja/value.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft::data::jinja {
namespace {

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

}  // namespace

bool truth(const Value& x) {
  if (const auto* const b = x.as<bool>()) return *b;
  if (x.is_number()) return x.number() != 0;
  if (x.text()) return !x.text()->empty();
  if (x.list()) return !x.list()->empty();
  if (x.as<std::shared_ptr<const Dict>>()) return !x.dict()->empty();
  return !x.is_undefined() && !x.is_none();
}

std::string to_text(const Value& x) {
  if (x.text()) return *x.text();
  if (x.is_undefined()) return "";
  return repr(x);
}

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

Value function(Function f) { return Value(std::make_shared<const Function>(std::move(f))); }

Value method_of(const Value& x, Function f) {
  Value method = function(std::move(f));
  method.take_part(x);
  return method;
}

}  // namespace weft::data::jinja
