// SPDX-License-Identifier: Apache-2.0
#include "dist/ddp/strategy.h"

#include "core/ops/concat.h"
#include "core/ops/reduce.h"

namespace weft::dist {

Tensor Strategy::grad_norm() const {
  WEFT_CHECK(!is_sharded(), "grad_norm: expected whole gradients on each rank, got those of fsdp");
  std::vector<Tensor> norms;
  for (const auto& [name, parameter] : parameters())
    if (parameter.grad().defined()) norms.push_back(norm(parameter.grad()));
  return norm(stack(norms, 0));
}

ShardedState Strategy::sharded_model() { fail("strategy: the model is not sharded"); }
ShardedState Strategy::sharded(const StateDict& /*part*/) { return sharded_model(); }

}  // namespace weft::dist
