// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The matrix product over the last two dimensions: [..., M, K] x [..., K, N] -> [..., M, N]. Leading dimensions
/// broadcast; a vector counts as a row on the left, as a column on the right, and that dimension goes. Transposed
/// operands are read through their strides. Under autocast in the low precision. Errors: K differs, two dtypes, not
/// floating.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace weft
