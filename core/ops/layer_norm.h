// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = (x - mean) / sqrt(var + eps) weight + bias over the last dimension of x [..., C] (Ba et al. 2016). weight, bias
/// [C] may be undefined; they are f32 (f64 for f64 x) whatever x is. Errors: sizes or dtypes that do not fit.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, double eps = 1e-5);

}  // namespace weft
