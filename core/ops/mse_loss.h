// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

/// (x - y)^2: its mean, its sum, or each. Errors: sizes differ.
Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

}  // namespace weft
