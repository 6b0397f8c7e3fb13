// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <type_traits>

#include "kernels/half.h"
#include "kernels/unary.h"

// The scalar formulas of kernels/unary.h, one for every device. T is the type that the kernel computes in: float,
// double, or int64_t for those of the functions that take integers.

namespace weft::kernels {

/// The functions that a device may bring its own version of (cpu/vector_math.h); here the C library's.
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
  static WEFT_HD T tanh(T x) {
    return std::tanh(x);
  }
  template <class T>
  static WEFT_HD T erf(T x) {
    return std::erf(x);
  }
};

/// y = f(x); a and b are UnaryArguments in T. NaN in, NaN out (relu and clamp included).
template <Unary f, class Math = StandardMath, class T>
WEFT_HD T unary_value(T x, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  if constexpr (f == Unary::affine)
    return a * x + b;
  else if constexpr (f == Unary::neg)
    return -x;
  else if constexpr (f == Unary::abs)
    return x < T(0) ? -x : x == T(0) ? T(0) : x;
  else if constexpr (f == Unary::sign)
    return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
  else if constexpr (f == Unary::square)
    return x * x;
  else if constexpr (f == Unary::clamp)
    return x < a ? a : (x > b ? b : x);
  else {
    static_assert(std::is_floating_point_v<T>, "this function takes no integers");
    if constexpr (f == Unary::sqrt) return std::sqrt(x);
    if constexpr (f == Unary::rsqrt) return T(1) / std::sqrt(x);
    if constexpr (f == Unary::reciprocal) return T(1) / x;
    if constexpr (f == Unary::exp) return Math::exp(x);
    if constexpr (f == Unary::log) return Math::log(x);
    if constexpr (f == Unary::sin) return std::sin(x);
    if constexpr (f == Unary::cos) return std::cos(x);
    if constexpr (f == Unary::pow) return std::pow(x, a);
    if constexpr (f == Unary::relu) return x < T(0) ? T(0) : x;
    if constexpr (f == Unary::leaky_relu) return x > T(0) ? x : a * x;
    if constexpr (f == Unary::sigmoid) return T(1) / (T(1) + Math::exp(-x));
    if constexpr (f == Unary::tanh) return Math::tanh(x);
    if constexpr (f == Unary::gelu) return T(0.5) * x * (T(1) + Math::erf(x * T(0.70710678118654752440)));
    if constexpr (f == Unary::gelu_tanh) {
      const T inner = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
      return T(0.5) * x * (T(1) + Math::tanh(inner));
    }
  }
}

/// dx = dy f'. `saved` is x, or y where unary_saves_output(f).
template <Unary f, class Math = StandardMath, class T>
WEFT_HD T unary_gradient(T dy, [[maybe_unused]] T saved, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  static_assert(std::is_floating_point_v<T>, "gradients are floating");
  if constexpr (f == Unary::affine) return a * dy;
  if constexpr (f == Unary::neg) return -dy;
  if constexpr (f == Unary::abs) return saved > T(0) ? dy : saved < T(0) ? -dy : saved * dy;
  if constexpr (f == Unary::sign) return T(0);
  if constexpr (f == Unary::square) return T(2) * saved * dy;
  if constexpr (f == Unary::sqrt) return T(0.5) * dy / saved;
  if constexpr (f == Unary::rsqrt) return T(-0.5) * dy * saved * saved * saved;
  if constexpr (f == Unary::reciprocal) return -dy * saved * saved;
  if constexpr (f == Unary::exp) return dy * saved;
  if constexpr (f == Unary::log) return dy / saved;
  if constexpr (f == Unary::sin) return dy * std::cos(saved);
  if constexpr (f == Unary::cos) return -dy * std::sin(saved);
  if constexpr (f == Unary::pow) return a == T(0) ? T(0) : dy * a * std::pow(saved, a - T(1));
  if constexpr (f == Unary::clamp) return saved < a || saved > b ? T(0) : dy;
  if constexpr (f == Unary::relu) return saved <= T(0) ? T(0) : dy;
  if constexpr (f == Unary::leaky_relu) return saved > T(0) ? dy : a * dy;
  if constexpr (f == Unary::sigmoid) return dy * saved * (T(1) - saved);
  if constexpr (f == Unary::tanh) return dy * (T(1) - saved * saved);
  if constexpr (f == Unary::gelu) {
    const T cumulative = T(0.5) * (T(1) + Math::erf(saved * T(0.70710678118654752440)));
    const T density = T(0.39894228040143267794) * Math::exp(T(-0.5) * saved * saved);
    return dy * (cumulative + saved * density);
  }
  if constexpr (f == Unary::gelu_tanh) {
    const T k = T(0.79788456080286535588), c = T(0.044715), square = saved * saved;
    const T t = Math::tanh(k * (saved + c * saved * square));
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * saved * (T(1) - t * t) * k * (T(1) + T(3) * c * square));
  }
}

/// True for the functions that also take i64 and i32.
constexpr bool unary_takes_integers(Unary f) {
  return f == Unary::affine || f == Unary::neg || f == Unary::abs || f == Unary::sign || f == Unary::square ||
         f == Unary::clamp;
}

/// Calls `body.operator()<f>()` with the function as a template argument: the dispatch happens once per call.
template <class Body>
void with_unary(Unary f, Body&& body) {
  switch (f) {
    case Unary::affine:
      return body.template operator()<Unary::affine>();
    case Unary::neg:
      return body.template operator()<Unary::neg>();
    case Unary::abs:
      return body.template operator()<Unary::abs>();
    case Unary::sign:
      return body.template operator()<Unary::sign>();
    case Unary::square:
      return body.template operator()<Unary::square>();
    case Unary::sqrt:
      return body.template operator()<Unary::sqrt>();
    case Unary::rsqrt:
      return body.template operator()<Unary::rsqrt>();
    case Unary::reciprocal:
      return body.template operator()<Unary::reciprocal>();
    case Unary::exp:
      return body.template operator()<Unary::exp>();
    case Unary::log:
      return body.template operator()<Unary::log>();
    case Unary::sin:
      return body.template operator()<Unary::sin>();
    case Unary::cos:
      return body.template operator()<Unary::cos>();
    case Unary::pow:
      return body.template operator()<Unary::pow>();
    case Unary::clamp:
      return body.template operator()<Unary::clamp>();
    case Unary::relu:
      return body.template operator()<Unary::relu>();
    case Unary::leaky_relu:
      return body.template operator()<Unary::leaky_relu>();
    case Unary::sigmoid:
      return body.template operator()<Unary::sigmoid>();
    case Unary::tanh:
      return body.template operator()<Unary::tanh>();
    case Unary::gelu:
      return body.template operator()<Unary::gelu>();
    case Unary::gelu_tanh:
      return body.template operator()<Unary::gelu_tanh>();
  }
}

}  // namespace weft::kernels
