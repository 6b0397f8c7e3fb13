// SPDX-License-Identifier: Apache-2.0
#include "core/ops/max.h"

#include "core/autograd.h"
#include "core/ops/compare.h"
#include "core/ops/div.h"
#include "core/ops/mul.h"
#include "core/ops/reduced.h"
#include "core/trace.h"

namespace weft {

Tensor max(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "max: expected a tensor, got none");
  const OpScope scope("max");
  const bool small = input.dtype() == DType::boolean || input.dtype() == DType::u8;
  const Tensor x = small ? input.to(DType::i64) : input;
  const Reduced to = reduced("max", x, dims);
  WEFT_CHECK(to.count > 0, "max: nothing to choose from in ", x);
  const Tensor kept = reduce(kernels::Reduce::max, x, to);
  const Tensor y = keep_dims || to.dropped.rank() == x.dim() ? kept : kept.reshape(to.dropped);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "max", {x}, [x = Saved(x), kept = Saved(kept)](const Tensor& dy) {
    const Tensor chosen = eq(x, kept).to(dy.dtype());
    const Tensor count = reduce(kernels::Reduce::sum, chosen, {kept.sizes(), {}, 1});
    return Grads{mul(chosen, div(dy.reshape(kept.sizes()), count))};
  });
}

}  // namespace weft
