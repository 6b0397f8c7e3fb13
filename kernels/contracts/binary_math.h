// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/contracts/binary.h"
#include "kernels/half.h"

// The formulas of kernels/contracts/binary_table.h as functions, one for every device. T is the type that the kernel computes in:
// float, double or int64_t.

namespace weft::kernels {

/// Base to the exponent in integers; a negative exponent truncates 1 / base^n to an integer.
WEFT_HD int64_t raised(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<int64_t>(result);
}

/// Truncated quotient; x / 0 is 0 and the least integer / -1 wraps, so that nothing traps.
WEFT_HD int64_t quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(a));
  return a / b;
}

template <class T>
WEFT_HD T quotient(T a, T b) {
  return a / b;
}

template <class T>
WEFT_HD T raised(T a, T b) {
  return std::pow(a, b);
}

/// The angle of the point (b, a); of integers without its fraction.
WEFT_HD int64_t angle_of(int64_t a, int64_t b) {
  return static_cast<int64_t>(std::atan2(static_cast<double>(a), static_cast<double>(b)));
}
template <class T>
WEFT_HD T angle_of(T a, T b) {
  return std::atan2(a, b);
}

/// a - b trunc(a / b); 0 where an integer b is 0.
WEFT_HD int64_t truncated_rest(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T>
WEFT_HD T truncated_rest(T a, T b) {
  return std::fmod(a, b);
}

/// a - b floor(a / b): the truncated one, moved to b's side of 0.
template <class T>
WEFT_HD T floored_rest(T a, T b) {
  const T rest = truncated_rest(a, b);
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}

/// y = f(a, b); only add reads alpha.
template <Binary f, class T>
WEFT_HD T binary_value(T a, T b, [[maybe_unused]] T alpha) {
#define WEFT_ROW(name, ...) \
  if constexpr (f == Binary::name) return __VA_ARGS__;
  WEFT_BINARY_TABLE(WEFT_ROW)
#undef WEFT_ROW
}

/// The predicate of kernels/contracts/binary.h.
template <Compare f, class T>
WEFT_HD bool compare_value(T a, T b) {
#define WEFT_ROW(name, ...) \
  if constexpr (f == Compare::name) return __VA_ARGS__;
  WEFT_COMPARE_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
}

/// Calls `body.operator()<f>()` with the function as a template argument.
template <class Body>
void with_binary(Binary f, Body&& body) {
  switch (f) {
#define WEFT_ROW(name, ...) \
  case Binary::name:        \
    return body.template operator()<Binary::name>();
    WEFT_BINARY_TABLE(WEFT_ROW)
#undef WEFT_ROW
  }
  fail("binary: no function has the number ", static_cast<int>(f));
}

/// Calls `body.operator()<f>()` with the predicate as a template argument.
template <class Body>
void with_compare(Compare f, Body&& body) {
  switch (f) {
#define WEFT_ROW(name, ...) \
  case Compare::name:       \
    return body.template operator()<Compare::name>();
    WEFT_COMPARE_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
  }
  fail("compare: no function has the number ", static_cast<int>(f));
}

}  // namespace weft::kernels
