// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// A view of `x` with `sizes`, stretched dimensions by stride 0; needs sizes that x broadcasts to.
kernels::View broadcast_view(const Tensor& x, const Shape& sizes);

/// A tensor that an op may read while writing x in place: `source`, or a copy if `source` views x's memory otherwise.
Tensor apart_from(const Tensor& x, const Tensor& source);

/// Errors: elements of x, which is written in place, share memory, as those of an expanded tensor do.
void check_own_elements(const char* op, const Tensor& x);

/// Errors: a change in place by `source` would lose its gradient, since no such change is recorded.
void check_needs_no_gradient(const char* op, const Tensor& source);

/// Two operands of an elementwise op, brought to one dtype (differentiably), and the sizes of the result.
struct Operands {
  Tensor a, b;
  Shape sizes;
};
/// Errors: undefined operands, two devices, sizes that do not broadcast.
Operands operands(const char* op, const Tensor& a, const Tensor& b);

}  // namespace weft
