// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = (x - mean) / sqrt(var + eps) weight + bias over the last dimension of x [..., C] (Ba et al. 2016). weight, bias
/// [C] may be undefined; they are f32 (f64 for f64 x) whatever x is. Errors: sizes or dtypes that do not fit.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

/// What a transformer's block takes from its residual stream: the new stream and its norm.
struct NormedSum {
  Tensor sum;  ///< x + residual
  Tensor y;    ///< layer_norm(sum)
};

/// sum = x + residual and y = layer_norm(sum) in one pass over memory; in backward the gradient that came to sum from
/// elsewhere is added in the norm's own pass. x and residual have the same sizes; residual is taken in x's dtype.
/// Errors: as layer_norm(), and of sizes that differ.
NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight = {}, const Tensor& bias = {},
                         double eps = 1e-5);

}  // namespace weft
