// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "dist/group/process_group.h"

// Differentiable collectives, for losses over the samples of all ranks. Each returns a new tensor, waits for the other
// ranks, and runs its conjugate in backward, which is collective too. Gradients are those of the sum
// of all ranks' losses; DDP, which averages them, makes that the mean. Parts are ranges of dimension 0.

namespace weft::dist {

/// y = sum over the ranks of x; dx = sum over the ranks of dy.
Tensor all_reduce(const Tensor& x, const ProcessGroupPtr& group);

/// y = the x of all ranks in their order, rows[r] rows of rank r (empty: as many as of this one); dx = the sum over the
/// ranks of this rank's part of dy. Errors: no dimension; those of ProcessGroup::all_gather().
Tensor all_gather(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& rows = {});

/// y = this rank's part of the sum over the ranks of x, rows[r] rows for rank r (empty: equal parts); dx = the dy of
/// all ranks in their order. Errors: no dimension; rows that do not divide by the ranks; those of
/// ProcessGroup::reduce_scatter().
Tensor reduce_scatter(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& rows = {});

/// y = the parts that the ranks have for this one, output_rows[r] rows of rank r; x holds input_rows[r] rows for rank r
/// (both empty: equal parts); dx: each part of dy goes back. Errors: no dimension; those of ProcessGroup::all_to_all().
Tensor all_to_all(const Tensor& x, const ProcessGroupPtr& group, const std::vector<int64_t>& output_rows = {},
                  const std::vector<int64_t>& input_rows = {});

}  // namespace weft::dist
