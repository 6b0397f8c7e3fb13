// SPDX-License-Identifier: Apache-2.0
#include "core/ops/stack.h"

#include "core/ops/concat.h"

namespace weft {

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  WEFT_CHECK(!tensors.empty(), "stack: expected at least one tensor, got none");
  std::vector<Tensor> slices;
  for (const Tensor& x : tensors) {
    WEFT_CHECK(x.defined() && x.sizes() == tensors.front().sizes(), "stack: expected tensors like ", tensors.front(),
               ", got ", x);
    slices.push_back(x.unsqueeze(dim));
  }
  return concat(slices, wrap_dim("stack", dim, slices.front().dim()));
}

}  // namespace weft
