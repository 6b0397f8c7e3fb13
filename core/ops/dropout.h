// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Training: each element is 0 with probability p, else x / (1 - p) (Srivastava et al. 2014). Not training, or p = 0:
/// x. The mask is a function of the generator's state and the rank (set_dropout_rank()): it is computed again in
/// backward, never stored. Errors: p outside [0, 1].
Tensor dropout(const Tensor& x, double p = 0.5, bool training = true);

}  // namespace weft
