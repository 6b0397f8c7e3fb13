// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data::jinja {

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

/// Cuts the source as Jinja's lexer with trim_blocks and lstrip_blocks. Errors, with their line: no token.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace weft::data::jinja
