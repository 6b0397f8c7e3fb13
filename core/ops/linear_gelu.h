// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/gelu.h"

namespace weft {

/// y = gelu(x weight^T + bias), as linear and gelu in one pass over y; gelu sees the sums before they are rounded to
/// the dtype. Defined in linear.cpp. Errors: as linear.
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Gelu approximate = Gelu::erf);

}  // namespace weft
