// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

struct NllLossOptions {
  int64_t ignore_index = -100;  ///< rows with this class count for nothing
  Reduction reduction = Reduction::mean;
};

/// -log_probs[n, target[n]]: log_probs [N, C], target integers [N]. The mean is over the rows that are not ignored.
/// Errors: sizes that do not fit; on the CPU a class outside [0, C).
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NllLossOptions& options = {});

}  // namespace weft
