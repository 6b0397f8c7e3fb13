// SPDX-License-Identifier: Apache-2.0
#include "core/ops/mean.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/reduced.h"
#include "core/trace.h"

namespace weft {

Tensor mean(const Tensor& input, const std::vector<int64_t>& dims, bool keep_dims) {
  WEFT_CHECK(input.defined(), "mean: expected a tensor, got none");
  const OpScope scope("mean");
  const Tensor x = input.is_floating() ? autocast_full(input) : input.to(DType::f32);
  const Reduced to = reduced("mean", x, dims);
  const Tensor kept = reduce(kernels::Reduce::mean, x, to);
  const Tensor y = keep_dims || to.dropped.rank() == x.dim() ? kept : kept.reshape(to.dropped);
  return differentiable(y, "mean", {x}, [to, sizes = x.sizes()](const Tensor& dy) {
    return Grads{affine(dy, 1.0 / static_cast<double>(to.count), 0).reshape(to.kept).expand(sizes)};
  });
}

}  // namespace weft
