// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// Products of vectors and matrices by other ops. Errors: other ranks or sizes than those named.

/// The sum of a b: a, b [N].
Tensor dot(const Tensor& a, const Tensor& b);
/// y[i, j] = a[i] b[j]: a [N], b [M].
Tensor outer(const Tensor& a, const Tensor& b);
/// y[i P + p, j Q + q] = a[i, j] b[p, q]: the Kronecker product of a [M, N] and b [P, Q].
Tensor kron(const Tensor& a, const Tensor& b);
/// The cross product of vectors of 3 along `dim`, with broadcasting.
Tensor cross(const Tensor& a, const Tensor& b, Integer dim = -1);
/// The sum of the diagonal of x [M, N].
Tensor trace(const Tensor& x);

}  // namespace weft
