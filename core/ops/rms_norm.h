// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layer_norm.h"

namespace weft {

/// y = x / sqrt(mean(x^2) + eps) weight over the last dimension of x [..., C] (Zhang and Sennrich 2019). weight [C] may
/// be undefined; it is f32 (f64 for f64 x) whatever x is. Errors: sizes or dtypes that do not fit.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double eps = 1e-6);

/// sum = x + residual and y = rms_norm(sum) in one pass over memory; as add_layer_norm().
NormedSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight = {}, double eps = 1e-6);

}  // namespace weft
