// SPDX-License-Identifier: Apache-2.0
#include "core/ops/norm.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/compare.h"
#include "core/ops/div.h"
#include "core/ops/mul.h"
#include "core/ops/reduced.h"
#include "core/ops/where.h"
#include "core/trace.h"

namespace weft {

Tensor norm(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined() && input.is_floating(), "norm: expected a floating tensor, got ", input);
  const OpScope scope("norm");
  const Tensor x = autocast_full(input);
  const Reduced to = reduced("norm", x, dims);
  const Tensor kept = reduce(kernels::Reduce::norm, x, to);
  const Tensor y = keep_dims || to.dropped.rank() == x.dim() ? kept : kept.reshape(to.dropped);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "norm", {x}, [x = Saved(x), kept = Saved(kept)](const Tensor& dy) {
    const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device());
    const Tensor scale = where(eq(kept, 0.0), zero, div(dy.reshape(kept.sizes()), kept));
    return Grads{mul(x, scale)};
  });
}

}  // namespace weft
