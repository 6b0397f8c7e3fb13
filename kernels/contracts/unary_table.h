// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every elementwise function of a tensor, with its derivative. The enumeration, the kernels of all devices, the
// ops (core/ops/unary.h) and their tests follow from these rows: docs/add_an_op.md.
//
// A row: name, numbers (floating, or any: i64 and i32, too), what backward reads (x or y), y, dx. The formulas are C++
// in x, y, dy and the scalars a and b of UnaryArguments, all of the kernel's type T; Math is
// StandardMath or a device's own version of it. NaN in, NaN out (relu and clamp included), but for sign(NaN) = 0. Where
// a function has a corner its gradient is PyTorch's: 0 of abs at 0 and of clamp at its bounds, and of both at NaN. pow
// is IEEE 754's, from which PyTorch departs at -0: pow(-0, -0.5) = inf, pow(-0, 0.5) = 0 with the gradient inf.
//
// An OP is also the op `Tensor name(const Tensor& x)`. The op of a FUNCTION takes more arguments, and has a file of its
// own in core/ops. New rows go to the end, so that the others keep their numbers.

/// For users of one kind of rows: WEFT_UNARY_TABLE(ROW, WEFT_NO_ROW).
#define WEFT_NO_ROW(...)

// clang-format off
#define WEFT_UNARY_TABLE(OP, FUNCTION)                                                                                 \
  FUNCTION(affine, any, x, a * x + b, a * dy)                                                                          \
  OP(neg, any, x, -x, -dy)                                                                                             \
  OP(abs, any, x, x < T(0) ? -x : x == T(0) ? T(0) : x, x > T(0) ? dy : x < T(0) ? -dy : T(0))                         \
  OP(sign, any, x, x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0), T(0))                                                    \
  OP(square, any, x, x * x, T(2) * x * dy)                                                                             \
  OP(sqrt, floating, y, std::sqrt(x), T(0.5) * dy / y)                                                                 \
  OP(rsqrt, floating, y, T(1) / std::sqrt(x), T(-0.5) * dy * y * y * y)                                                \
  OP(reciprocal, floating, y, T(1) / x, -dy * y * y)                                                                   \
  OP(exp, floating, y, Math::exp(x), dy * y)                                                                           \
  OP(log, floating, x, Math::log(x), dy / x)                                                                           \
  OP(sin, floating, x, std::sin(x), dy * std::cos(x))                                                                  \
  OP(cos, floating, x, std::cos(x), -dy * std::sin(x))                                                                 \
  FUNCTION(pow, floating, x, power(x, a), a == T(0) ? T(0) : dy * a * power(x, a - T(1)))                              \
  FUNCTION(clamp, any, x, x < a ? a : (x > b ? b : x), x > a && x < b ? dy : T(0))                                     \
  OP(relu, floating, y, x < T(0) ? T(0) : x, y <= T(0) ? T(0) : dy)                                                    \
  FUNCTION(leaky_relu, floating, x, x > T(0) ? x : a * x, x > T(0) ? dy : a * dy)                                      \
  OP(sigmoid, floating, y, T(1) / (T(1) + Math::exp(-x)), dy * y * (T(1) - y))                                         \
  OP(tanh, floating, y, Math::tanh(x), dy * (T(1) - y * y))                                                            \
  FUNCTION(gelu, floating, x, gelu_value<Math>(x), dy * gelu_slope<Math>(x))                                           \
  FUNCTION(gelu_tanh, floating, x, gelu_tanh_value<Math>(x), dy * gelu_tanh_slope<Math>(x))                            \
  OP(log1p, floating, x, Math::log1p(x), dy / (T(1) + x))                                                              \
  OP(expm1, floating, y, Math::expm1(x), dy * (y + T(1)))                                                              \
  OP(erf, floating, x, Math::erf(x), dy * T(1.12837916709551257390) * Math::exp(-x * x))                               \
  OP(floor, floating, x, std::floor(x), T(0))                                                                          \
  OP(ceil, floating, x, std::ceil(x), T(0))                                                                            \
  OP(round, floating, x, std::rint(x), T(0))                                                                           \
  OP(silu, floating, x, x / (T(1) + Math::exp(-x)), dy * silu_slope<Math>(x))                                          \
  OP(softplus, floating, x, softplus_value<Math>(x), dy / (T(1) + Math::exp(-x)))                                      \
  OP(mish, floating, x, x * Math::tanh(softplus_value<Math>(x)), dy * mish_slope<Math>(x))                             \
  FUNCTION(elu, floating, x, x > T(0) ? x : a * Math::expm1(x), x > T(0) ? dy : dy * a * Math::exp(x))                 \

// clang-format on
