// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "kernels/kernel.h"

namespace weft::kernels {

/// Elementwise functions of one tensor. `a` and `b` are the two scalars of UnaryArguments.
enum class Unary : uint8_t {
  affine,      ///< a x + b
  neg,         ///< -x
  abs,         ///< |x|
  sign,        ///< -1, 0 or 1
  square,      ///< x^2
  sqrt,        ///< x^(1/2)
  rsqrt,       ///< x^(-1/2)
  reciprocal,  ///< 1 / x
  exp,         ///< e^x
  log,         ///< natural logarithm
  sin,         ///< sine, radians
  cos,         ///< cosine, radians
  pow,         ///< x^a
  clamp,       ///< min(max(x, a), b)
  relu,        ///< max(x, 0)
  leaky_relu,  ///< x > 0 ? x : a x
  sigmoid,     ///< 1 / (1 + e^-x)
  tanh,        ///< hyperbolic tangent
  gelu,        ///< x Phi(x), Phi by erf (Hendrycks and Gimpel 2016)
  gelu_tanh,   ///< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
};
inline constexpr int kUnaryCount = static_cast<int>(Unary::gelu_tanh) + 1;

struct UnaryArguments {
  double a = 0, b = 0;
};

/// y = f(x). Same sizes, same floating dtype (affine, neg, abs, sign, clamp, square also i64, i32), any strides.
/// Computed in f32 (f64 for f64).
WEFT_KERNEL(unary_forward, const Queue& queue, Unary f, const View& y, const View& x, UnaryArguments arguments);

/// dx = dy f'(x). `saved` is x, except for relu, sigmoid, tanh, exp, sqrt, rsqrt and reciprocal, whose derivative is
/// computed from the output: there `saved` is y. See unary_saves_output.
WEFT_KERNEL(unary_backward, const Queue& queue, Unary f, const View& dx, const View& dy, const View& saved,
            UnaryArguments arguments);

/// True where unary_backward wants y rather than x.
constexpr bool unary_saves_output(Unary f) {
  return f == Unary::relu || f == Unary::sigmoid || f == Unary::tanh || f == Unary::exp || f == Unary::sqrt ||
         f == Unary::rsqrt || f == Unary::reciprocal;
}

}  // namespace weft::kernels
