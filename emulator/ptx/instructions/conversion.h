// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "emulator/ptx/instructions/numbers.h"
#include "emulator/ptx/parse/ast.h"

namespace emulator::ptx {

/// A cvt of a number with all its modifiers, if convert.cpp has no loop of its own.
struct Conversion {
  Type from = Type::none, to = Type::none;
  int to_bytes = 4;  ///< the register's: integers are extended to it
  Rounding rounding = Rounding::nearest;
  bool to_integral = false;  ///< .rni, .rzi, .rmi, .rpi: to an integer, also where the result is a float
  bool ftz = false, sat = false, satfinite = false, relu = false;

  /// The bits of the result, zero beyond the register's width.
  uint64_t operator()(uint64_t bits) const;

 private:
  double read_float(uint64_t bits) const;
  uint64_t integer_of_integer(bool negative, uint64_t magnitude) const;
  uint64_t integer_of_float(double v) const;
  uint64_t write_integer(uint64_t bits) const;
  uint64_t write_float(double v) const;
};

/// PTX ISA 9.7.9.22: what a NaN becomes as an integer of `bits`: zero only where neither side is 64 bits wide.
constexpr uint64_t integer_of_nan(bool from_f64, int bits) {
  return from_f64 || bits == 64 ? uint64_t{1} << (bits - 1) : 0;
}

/// To an integral number.
double integral(double v, Rounding rounding);

}  // namespace emulator::ptx
