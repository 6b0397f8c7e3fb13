// SPDX-License-Identifier: Apache-2.0
#include "data/text/jinja.h"

#include <nlohmann/json.hpp>

#include "data/text/jinja/filters.h"
#include "data/text/jinja/parser.h"
#include "kernels/error.h"

namespace weft::data {

struct JinjaTemplate::Program {
  jinja::Block body;
};

JinjaTemplate::JinjaTemplate(std::string_view source, std::string what) : what_(std::move(what)) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {  // every line end is \n
    if (source[i] != '\r')
      text += source[i];
    else if (i + 1 == source.size() || source[i + 1] != '\n')
      text += '\n';
  }
  try {
    jinja::Parsed parsed = jinja::parse(jinja::tokens_of(text));
    program_ = std::make_shared<const Program>(Program{std::move(parsed.body)});
    marks_generation_ = parsed.marks_generation;
  } catch (const Error& error) {
    fail(what_, ": ", error.what());
  }
}

JinjaTemplate::Rendered JinjaTemplate::render(const nlohmann::ordered_json& variables) const {
  jinja::Context context;
  context.scopes.emplace_back();
  try {
    for (const auto& [name, value] : variables.items()) context.scopes[0][name] = jinja::from_json(value);
    for (const auto& [name, value] : jinja::global_functions()) context.scopes[0][name] = value;
    jinja::run(program_->body, context);
  } catch (const Error& error) {
    fail(what_, ": ", error.what());
  }
  return {std::move(context.out), std::move(context.generated)};
}

}  // namespace weft::data
