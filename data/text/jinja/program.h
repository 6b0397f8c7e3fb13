// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/text/jinja/value.h"

// A parsed template: functions of a context, which hold each other.

namespace weft::data::jinja {

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

inline Flow run(const Block& block, Context& context) {
  for (const Statement& statement : block)
    if (const Flow flow = statement(context); flow != Flow::on) return flow;
  return Flow::on;
}

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

}  // namespace weft::data::jinja
