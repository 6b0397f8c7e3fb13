// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/unary.h"
#include "core/tensor.h"

namespace weft {

/// y = x weight^T + bias: x [..., in], weight [out, in], bias [out] or undefined. Under autocast in the low precision.
/// Errors: sizes that do not fit, two dtypes, two devices.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

/// y = gelu(x weight^T + bias), as linear and gelu in one pass over y; gelu sees the sums before they are rounded to
/// the dtype. Defined in linear.cpp. Errors: as linear.
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Gelu approximate = Gelu::erf);

}  // namespace weft
