// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// A view of `x` with `sizes`, stretched dimensions by stride 0; needs sizes that x broadcasts to.
kernels::View broadcast_view(const Tensor& x, const Shape& sizes);

/// Two operands of an elementwise op, brought to one dtype (differentiably), and the sizes of the result.
struct Operands {
  Tensor a, b;
  Shape sizes;
};
/// Errors: undefined operands, two devices, sizes that do not broadcast.
Operands operands(const char* op, const Tensor& a, const Tensor& b);

}  // namespace weft
