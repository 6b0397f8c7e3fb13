// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

/// |x - y|: its mean, its sum, or each. Errors: sizes differ.
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

/// d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2 (Girshick 2015): its mean, its sum, or each. Errors: sizes
/// differ, beta is not positive.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta = 1, Reduction reduction = Reduction::mean);

}  // namespace weft
