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

// Between regions each rank may keep its tokens alone (sequence parallelism; Korthikanti et al. 2022, "Reducing
// activation recomputation in large transformer models", section 4.2.2): x [N, ceil(tokens / ranks), …]. Where the
// ranks do not divide the tokens, padding follows the last one. `tokens`: how many there are without it; 0: it has
// none.

/// In place of copy_to_region(): y [N, tokens, …] of all ranks' tokens; dx = this rank's part of the sum over the ranks
/// of dy.
Tensor gather_into_region(const Tensor& x, const ProcessGroupPtr& group, int64_t tokens = 0);
/// In place of reduce_from_region(): this rank's part of the sum over the ranks of x [N, tokens, …]; dx = dy of all
/// ranks' tokens. Padding is 0, as its gradient must be.
Tensor scatter_from_region(const Tensor& x, const ProcessGroupPtr& group);
/// This rank's tokens of x [N, tokens, …], which is the same on all ranks, then zeros; dx = dy of all ranks' tokens.
Tensor own_tokens(const Tensor& x, const ProcessGroupPtr& group);
/// All ranks' tokens; dx = this rank's tokens of dy, which is the same on all ranks.
Tensor all_tokens(const Tensor& x, const ProcessGroupPtr& group, int64_t tokens = 0);

}  // namespace weft::dist
