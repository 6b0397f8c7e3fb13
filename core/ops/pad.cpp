// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pad.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/copy.h"

namespace weft {

Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after) {
  const OpScope scope("pad");
  WEFT_CHECK(x.defined() && x.dim() >= 1, "pad: expected a tensor of at least one dimension, got ", x);
  WEFT_CHECK(before >= 0 && after >= 0, "pad: expected no negative padding, got ", before, " and ", after);
  const int at = wrap_dim("pad", dim, x.dim());
  const int64_t length = x.size(at);
  Shape sizes = x.sizes();
  sizes[at] = before + length + after;
  const Tensor y = Tensor::zeros(sizes, x.dtype(), x.device());
  kernels::copy(y.queue(), y.slice(at, before, length), x);
  return differentiable(y, "pad", {x}, [=](const Tensor& dy) { return Grads{dy.slice(at, before, length)}; });
}

}  // namespace weft
