// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x weight^T + bias: x [..., in], weight [out, in], bias [out] or undefined. Under autocast in the low precision.
/// Errors: sizes that do not fit, two dtypes, two devices.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

}  // namespace weft
