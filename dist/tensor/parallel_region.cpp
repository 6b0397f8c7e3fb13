// SPDX-License-Identifier: Apache-2.0
#include "dist/tensor/parallel_region.h"

#include "core/autograd.h"
#include "core/capture.h"
#include "core/ops/concat.h"
#include "dist/group/functional.h"

namespace weft::dist {
namespace {

void check(const char* op, const Tensor& x, const ProcessGroupPtr& group) {
  WEFT_CHECK(group, op, ": expected a group, got none");
  WEFT_CHECK(x.defined(), op, ": expected a tensor, got none");
}

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

/// x [N, tokens, …], padded to [N, ranks t, …], as [ranks N, t, …], a rank's rows after another's; and back.
Tensor by_rank(const Tensor& x, int64_t ranks) {
  WEFT_CHECK(x.dim() >= 2, "sequence parallelism: expected [N, tokens, …], got ", x);
  const int64_t N = x.size(0), tokens = (x.size(1) + ranks - 1) / ranks, padding = ranks * tokens - x.size(1);
  const Tensor whole = padding > 0 ? pad(x, 1, 0, padding) : x;
  return whole.reshape({N, ranks, tokens, -1}).transpose(0, 1).reshape({ranks * N, tokens, -1});
}
Tensor by_token(const Tensor& x, int64_t ranks, int64_t tokens) {
  const int64_t N = x.size(0) / ranks, all = ranks * x.size(1);
  const Tensor y = x.reshape({ranks, N, x.size(1), -1}).transpose(0, 1).reshape({N, all, -1});
  return tokens == 0 || tokens == all ? y : y.slice(1, 0, tokens).contiguous();
}

/// x [N, t, width] is dense in what follows.
Tensor joined(const Tensor& x, const ProcessGroupPtr& group, int64_t tokens) {
  const NoGrad no_grad;
  return by_token(all_gather(x.detach().contiguous(), group), group->size(), tokens);
}
Tensor part_of(const Tensor& x, const ProcessGroupPtr& group) {
  const NoGrad no_grad;
  const int64_t N = x.size(0);
  return by_rank(x.detach(), group->size()).slice(0, group->rank() * N, N).clone();
}

}  // namespace

Tensor gather_into_region(const Tensor& x, const ProcessGroupPtr& group, int64_t tokens) {
  check("gather_into_region", x, group);
  return group->size() == 1 ? x : by_token(all_gather(x.contiguous(), group), group->size(), tokens);
}

Tensor scatter_from_region(const Tensor& x, const ProcessGroupPtr& group) {
  check("scatter_from_region", x, group);
  return group->size() == 1 ? x : reduce_scatter(by_rank(x, group->size()).contiguous(), group);
}

Tensor own_tokens(const Tensor& x, const ProcessGroupPtr& group) {
  check("own_tokens", x, group);
  if (group->size() == 1) return x;
  return differentiable(part_of(x, group), "own_tokens", {x},
                        [group, tokens = x.size(1)](const Tensor& dy) { return Grads{all_tokens(dy, group, tokens)}; });
}

Tensor all_tokens(const Tensor& x, const ProcessGroupPtr& group, int64_t tokens) {
  check("all_tokens", x, group);
  if (group->size() == 1) return x;
  return differentiable(joined(x, group, tokens), "all_tokens", {x},
                        [group](const Tensor& dy) { return Grads{own_tokens(dy, group)}; });
}

Tensor copy_to_region(const Tensor& x, const ProcessGroupPtr& group) {
  check("copy_to_region", x, group);
  if (group->size() == 1) return x;
  return differentiable(x.detach(), "copy_to_region", {x}, [group](const Tensor& dy) {
    return Grads{reduced(dy, group, "gradient of the input of a region")};
  });
}

Tensor reduce_from_region(const Tensor& x, const ProcessGroupPtr& group) {
  check("reduce_from_region", x, group);
  if (group->size() == 1) return x;
  return reduced(x, group, "output of a region");
}

}  // namespace weft::dist
