// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/binary.h"
#include "kernels/half.h"

// The scalar formulas of kernels/binary.h, one for every device. T is the type that the kernel computes in: float,
// double or int64_t.

namespace weft::kernels {

/// Base to the exponent in integers; a negative exponent truncates 1 / base^n to an integer.
WEFT_HD int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return static_cast<int64_t>(result);
}

/// Truncated quotient; x / 0 is 0 and the overflow of the least integer by -1 wraps, so that nothing traps.
WEFT_HD int64_t integer_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(a));
  return a / b;
}

/// y = f(a, b); only add reads alpha. maximum and minimum: NaN wins.
template <Binary f, class T>
WEFT_HD T binary_value(T a, T b, [[maybe_unused]] T alpha) {
  if constexpr (f == Binary::add) return a + alpha * b;
  if constexpr (f == Binary::sub) return a - b;
  if constexpr (f == Binary::mul) return a * b;
  if constexpr (f == Binary::maximum) return a > b || a != a ? a : b;
  if constexpr (f == Binary::minimum) return a < b || a != a ? a : b;
  if constexpr (f == Binary::div) {
    if constexpr (std::is_integral_v<T>)
      return integer_quotient(a, b);
    else
      return a / b;
  }
  if constexpr (f == Binary::pow) {
    if constexpr (std::is_integral_v<T>)
      return integer_power(a, b);
    else
      return std::pow(a, b);
  }
}

/// The predicate of kernels/binary.h.
template <Compare f, class T>
WEFT_HD bool compare_value(T a, T b) {
  if constexpr (f == Compare::eq) return a == b;
  if constexpr (f == Compare::ne) return a != b;
  if constexpr (f == Compare::lt) return a < b;
  if constexpr (f == Compare::le) return a <= b;
  if constexpr (f == Compare::gt) return a > b;
  if constexpr (f == Compare::ge) return a >= b;
  if constexpr (f == Compare::logical_and) return a != T(0) && b != T(0);
  if constexpr (f == Compare::logical_or) return a != T(0) || b != T(0);
}

/// Calls `body.operator()<f>()` with the function as a template argument.
template <class Body>
void with_binary(Binary f, Body&& body) {
  switch (f) {
    case Binary::add:
      return body.template operator()<Binary::add>();
    case Binary::sub:
      return body.template operator()<Binary::sub>();
    case Binary::mul:
      return body.template operator()<Binary::mul>();
    case Binary::div:
      return body.template operator()<Binary::div>();
    case Binary::maximum:
      return body.template operator()<Binary::maximum>();
    case Binary::minimum:
      return body.template operator()<Binary::minimum>();
    case Binary::pow:
      return body.template operator()<Binary::pow>();
  }
}

/// Calls `body.operator()<f>()` with the predicate as a template argument.
template <class Body>
void with_compare(Compare f, Body&& body) {
  switch (f) {
    case Compare::eq:
      return body.template operator()<Compare::eq>();
    case Compare::ne:
      return body.template operator()<Compare::ne>();
    case Compare::lt:
      return body.template operator()<Compare::lt>();
    case Compare::le:
      return body.template operator()<Compare::le>();
    case Compare::gt:
      return body.template operator()<Compare::gt>();
    case Compare::ge:
      return body.template operator()<Compare::ge>();
    case Compare::logical_and:
      return body.template operator()<Compare::logical_and>();
    case Compare::logical_or:
      return body.template operator()<Compare::logical_or>();
  }
}

}  // namespace weft::kernels
