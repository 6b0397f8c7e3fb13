// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "kernels/unary.h"

namespace weft {

// y = f(x), element by element: `Tensor exp(const Tensor& x)` and its like, one for each OP of kernels/unary_table.h,
// which gives f and its derivative. Errors: x is not floating (nor, where the table says "any", i64 or i32).
#define WEFT_ROW(name, ...) Tensor name(const Tensor& x);
WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW

inline Tensor operator-(const Tensor& x) { return neg(x); }

/// What all elementwise functions of one tensor share: check, kernel, gradient. Errors: as above.
Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments = {});

}  // namespace weft
