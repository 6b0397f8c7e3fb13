// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sum.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/reduced.h"
#include "core/trace.h"

namespace weft {

Tensor sum(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "sum: expected a tensor, got none");
  const OpScope scope("sum");
  const Tensor x = input.is_floating() ? autocast_full(input) : input.to(DType::i64);
  const Reduced to = reduced("sum", x, dims);
  const Tensor kept = reduce(kernels::Reduce::sum, x, to);
  const Tensor y = keep_dims || to.dropped.rank() == x.dim() ? kept : kept.reshape(to.dropped);
  return differentiable(y, "sum", {x}, [kept_sizes = to.kept, sizes = x.sizes()](const Tensor& dy) {
    return Grads{dy.reshape(kept_sizes).expand(sizes)};
  });
}

}  // namespace weft
