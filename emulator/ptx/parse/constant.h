// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/parse/lexer.h"

namespace emulator::ptx {

/// A literal or the value of a constant expression (PTX ISA 4.5).
struct Constant {
  int64_t value = 0;         ///< an integer's value; else the bits of an f64, or with `single` the bits of an f32
  bool is_unsigned = false;  ///< signedness for / % >> and comparisons
  bool is_real = false, single = false;
};

/// Reads a constant expression: literals, WARP_SZ, casts (.s64) (.u64), and C's operators.
/// `with_or` is false where a `|` divides a pair of operands.
Constant read_constant(Lexer& lexer, bool with_or = true);
int64_t read_integer(Lexer& lexer);
/// Whether a constant can begin with this character.
inline bool begins_constant(char c) { return Lexer::is_digit(c) || c == '-' || c == '~' || c == '+' || c == '.'; }

}  // namespace emulator::ptx
