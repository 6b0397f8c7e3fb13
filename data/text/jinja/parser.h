// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "data/text/jinja/lexer.h"
#include "data/text/jinja/program.h"

namespace weft::data::jinja {

struct Parsed {
  Block body;
  bool marks_generation;  ///< whether there is a `generation` block
};

/// Errors: a construct beyond those of JinjaTemplate, with its line.
Parsed parse(std::vector<Token> tokens);

}  // namespace weft::data::jinja
