// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/contracts/unary.h"

namespace weft {

// y = f(x), element by element: `Tensor exp(const Tensor& x)` and its like, one for each OP of kernels/contracts/unary_table.h,
// which gives f and its derivative. Errors: x is not floating (nor, where the table says "any", i64 or i32).
#define WEFT_ROW(name, ...) Tensor name(const Tensor& x);
WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW

inline Tensor operator-(const Tensor& x) { return neg(x); }

/// All elementwise functions of one tensor share this: check, kernel, gradient. Errors: as above.
Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments = {});

/// y = scale x + shift, element by element, in one pass. Floating x keeps its dtype, and so do integers where both
/// numbers are whole (u8 and bool count in i64); else they become f32.
Tensor affine(const Tensor& x, Number scale, Number shift);

/// y = min(max(x, low), high), element by element; the gradient is 0 outside [low, high], at the bounds and at NaN.
/// Floating, i64 or i32; integers become f32 where a bound is not whole. Errors: low > high.
Tensor clamp(const Tensor& x, Number low, Number high);

/// y = x where x > 0, else alpha (e^x - 1), element by element (Clevert et al. 2015).
Tensor elu(const Tensor& x, double alpha = 1);

/// y = x > 0 ? x : slope x, element by element (Maas et al. 2013).
Tensor leaky_relu(const Tensor& x, double slope = 0.01);

/// How gelu's normal distribution function is computed.
enum class Gelu { erf, tanh };

/// y = x Phi(x) (Hendrycks and Gimpel 2016), Phi by the error function, or by the tanh formula of the paper.
Tensor gelu(const Tensor& x, Gelu approximate = Gelu::erf);

}  // namespace weft
