// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

/// t (log t - log_probs), element by element, 0 where the probability t is 0: its sum, its mean over all elements, or
/// each. The divergence of a batch [N, C] is the sum over N (PyTorch calls that "batchmean"). No gradient for t. Errors:
/// sizes differ.
Tensor kl_div(const Tensor& log_probs, const Tensor& target, Reduction reduction = Reduction::mean);

}  // namespace weft
