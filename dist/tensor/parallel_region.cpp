// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_region.h"

#include "core/autograd.h"
#include "core/capture.h"

namespace weft::dist {
namespace {

/// A copy: other ops may still read the original.
Tensor summed(const Tensor& x, const ProcessGroupPtr& group, const char* name) {
  const NoGrad no_grad;
  if (group->backend() != "nccl") refuse_while_capturing("tensor parallelism over a host backend", x.device());
  const Tensor sum = x.detach().clone();
  group->all_reduce(sum, ReduceOp::sum, {.name = name, .scale = {}, .at_once = true})->wait();
  return sum;
}

/// The two are each other's gradients.
Tensor reduced(const Tensor& x, const ProcessGroupPtr& group, const char* name) {
  return differentiable(summed(x, group, name), "reduce_from_region", {x},
                        [group](const Tensor& dy) { return Grads{copy_to_region(dy, group)}; });
}

}  // namespace

Tensor copy_to_region(const Tensor& x, const ProcessGroupPtr& group) {
  if (group->size() == 1) return x;
  return differentiable(x.detach(), "copy_to_region", {x}, [group](const Tensor& dy) {
    return Grads{reduced(dy, group, "gradient of the input of a region")};
  });
}

Tensor reduce_from_region(const Tensor& x, const ProcessGroupPtr& group) {
  if (group->size() == 1) return x;
  return reduced(x, group, "output of a region");
}

}  // namespace weft::dist
