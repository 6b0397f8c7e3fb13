// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

struct BceWithLogitsOptions {
  Tensor positive_weight = {};  ///< what a positive target counts as; broadcasts over the logits; none: 1
  Reduction reduction = Reduction::mean;
};

/// -(p t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))) for logits x and targets t in [0, 1] of the same sizes, p the
/// positive_weight: its mean, its sum, or each. Large logits of either sign lose nothing. The result is f32 (f64 for f64
/// logits). Errors: sizes differ, t is not floating.
Tensor bce_with_logits(const Tensor& x, const Tensor& target, const BceWithLogitsOptions& options = {});

}  // namespace weft
