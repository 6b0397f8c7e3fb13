// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/copy.h"

namespace weft {

Tensor cast(const Tensor& x, DType dtype) {
  WEFT_CHECK(x.defined(), "cast: expected a tensor, got none");
  if (x.dtype() == dtype) return x;
  const OpScope scope("cast");
  Tensor y = Tensor::empty(x.sizes(), dtype, x.device());
  kernels::copy(y.queue(), y, x);
  if (!is_floating(dtype)) return y;
  return differentiable(y, "cast", {x}, [from = x.dtype()](const Tensor& dy) { return Grads{cast(dy, from)}; });
}

Tensor Tensor::to(DType dtype) const { return cast(*this, dtype); }

}  // namespace weft
