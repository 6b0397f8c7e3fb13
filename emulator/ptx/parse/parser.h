// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <vector>

#include "emulator/ptx/parse/ast.h"
#include "emulator/ptx/parse/lexer.h"

// Shared by the parsers of headers and of bodies.

namespace emulator::ptx {

/// A variable from its state space on; the cursor is after the dot of the space. Reads `= …`, not the `;`.
/// Several names (`.shared .b32 a, b;`) become several variables where `many` is set.
std::vector<Variable> read_variables(Lexer& lexer, std::string_view space, bool many);
/// `= …` after a variable.
void read_content(Lexer& lexer, Variable& variable);
/// `( … )` of parameters or results; nothing when no parenthesis follows.
std::vector<Variable> read_parameters(Lexer& lexer);
/// False when the text names no state space.
bool space_of(std::string_view text, Space& space);
/// Decimal digits where no expression can be: the dot of `9.0` is no decimal point, the > of `<12>` no comparison.
int read_digits(Lexer& lexer);
/// A number of a header: `.align 8`, `.maxntid 128`.
int read_count(Lexer& lexer);

}  // namespace emulator::ptx
