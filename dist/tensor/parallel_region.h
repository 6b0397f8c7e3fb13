// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dist/group/process_group.h"

// Two conjugate ops; between them each rank computes its part from the same x (Shoeybi et al. 2019, "Megatron-LM",
// section 3, where they are called f and g):
//   y = reduce_from_region(g(copy_to_region(x))), the ranks' g being parts of one sum.
// Both are differentiable, change nothing in a group of one rank, and wait for the other ranks.

namespace weft::dist {

/// y = x, which is the same on all ranks of the group; dx = sum over the ranks of dy, in the dtype of x.
Tensor copy_to_region(const Tensor& x, const ProcessGroupPtr& group);

/// y = sum over the ranks of x, the same bits everywhere; dx = dy.
Tensor reduce_from_region(const Tensor& x, const ProcessGroupPtr& group);

}  // namespace weft::dist
