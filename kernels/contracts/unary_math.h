// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/contracts/unary.h"
#include "kernels/half.h"

// The formulas of kernels/contracts/unary_table.h as functions, one for every device. T is the type that the kernel computes in:
// float, double, or int64_t for those of the functions that take integers.

namespace weft::kernels {

/// The functions that a device may replace (cpu/vector_math.h); here the C library's.
struct StandardMath {
  template <class T>
  static WEFT_HD T exp(T x) {
    return std::exp(x);
  }
  template <class T>
  static WEFT_HD T log(T x) {
    return std::log(x);
  }
  template <class T>
  static WEFT_HD T log1p(T x) {
    return std::log1p(x);
  }
  template <class T>
  static WEFT_HD T expm1(T x) {
    return std::expm1(x);
  }
  template <class T>
  static WEFT_HD T tanh(T x) {
    return std::tanh(x);
  }
  template <class T>
  static WEFT_HD T erf(T x) {
    return std::erf(x);
  }
};

// The formulas of kernels/contracts/unary_table.h that are too long for a row: x Phi(x), Phi by erf (Hendrycks and Gimpel 2016)
// or by the tanh formula of the paper, and the derivatives.

template <class Math, class T>
WEFT_HD T gelu_value(T x) {
  return T(0.5) * x * (T(1) + Math::erf(x * T(0.70710678118654752440)));
}

template <class Math, class T>
WEFT_HD T gelu_slope(T x) {
  const T cumulative = T(0.5) * (T(1) + Math::erf(x * T(0.70710678118654752440)));
  const T density = T(0.39894228040143267794) * Math::exp(T(-0.5) * x * x);
  return cumulative + x * density;
}

template <class Math, class T>
WEFT_HD T gelu_tanh_value(T x) {
  const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
  return T(0.5) * x * (T(1) + Math::tanh(inner));
}

template <class Math, class T>
WEFT_HD T gelu_tanh_slope(T x) {
  const T k = T(0.79788456080286535588), c = T(0.044715), square = x * x;
  const T t = Math::tanh(k * (x + c * x * square));
  return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * k * (T(1) + T(3) * c * square);
}

// x / (1 + e^-x) (Elfwing et al. 2017), log(1 + e^x), and x tanh(log(1 + e^x)) (Misra 2019).

template <class Math, class T>
WEFT_HD T silu_slope(T x) {
  const T s = T(1) / (T(1) + Math::exp(-x));
  return s * (T(1) + x * (T(1) - s));
}

/// IEEE 754's pow; small integer exponents are many times as fast in a loop with constant a.
template <class T>
WEFT_HD T power(T x, T a) {
  return a == T(1) ? x : a == T(2) ? x * x : a == T(3) ? x * x * x : std::pow(x, a);
}

/// The exponent is never positive: no overflow.
template <class Math, class T>
WEFT_HD T softplus_value(T x) {
  return (x < T(0) ? T(0) : x) + Math::log1p(Math::exp(x < T(0) ? x : -x));
}

template <class Math, class T>
WEFT_HD T mish_slope(T x) {
  const T t = Math::tanh(softplus_value<Math>(x)), s = T(1) / (T(1) + Math::exp(-x));
  return t + x * (T(1) - t * t) * s;
}

/// y = f(x); a and b are UnaryArguments in T.
template <Unary f, class Math = StandardMath, class T>
WEFT_HD T unary_value(T x, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  static_assert(std::is_floating_point_v<T> || unary_takes_integers(f), "this function takes no integers");
#define WEFT_ROW(name, numbers, from, value, ...) \
  if constexpr (f == Unary::name) return value;
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
}

/// dx = dy f'. `saved` is x, or y if unary_saves_output(f).
template <Unary f, class Math = StandardMath, class T>
WEFT_HD T unary_gradient([[maybe_unused]] T dy, T saved, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  static_assert(std::is_floating_point_v<T>, "gradients are floating");
#define WEFT_ROW(name, numbers, from, value, ...) \
  if constexpr (f == Unary::name) {               \
    [[maybe_unused]] const T from = saved;        \
    return __VA_ARGS__;                           \
  }
  WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
}

/// Calls `body.operator()<f>()` with the function as a template argument: the dispatch happens once per call.
template <class Body>
void with_unary(Unary f, Body&& body) {
  switch (f) {
#define WEFT_ROW(name, ...) \
  case Unary::name:         \
    return body.template operator()<Unary::name>();
    WEFT_UNARY_TABLE(WEFT_ROW, WEFT_ROW)
#undef WEFT_ROW
  }
  fail("unary: no function has the number ", static_cast<int>(f));
}

}  // namespace weft::kernels
