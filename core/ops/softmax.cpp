// SPDX-License-Identifier: Apache-2.0
#include "core/ops/softmax.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/softmax.h"

namespace weft {

Tensor softmax(const Tensor& input, int64_t dim) {
  WEFT_CHECK(input.defined() && input.is_floating(), "softmax: expected a floating tensor, got ", input);
  WEFT_CHECK(input.dim() > 0, "softmax: expected at least one dimension, got ", input);
  const int at = wrap_dim("softmax", dim, input.dim());
  if (at != input.dim() - 1) return softmax(input.transpose(at, -1)).transpose(at, -1);
  const OpScope scope("softmax");
  const Tensor x = autocast_full(input).contiguous();
  const Tensor y = empty_like(x);
  kernels::softmax_forward(y.queue(), y, x, /*log=*/false);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "softmax", {x}, [y = Saved(y)](const Tensor& dy) {
    const Tensor dx = empty_like(dy);
    kernels::softmax_backward(dx.queue(), dx, dy.contiguous(), y, /*log=*/false);
    return Grads{dx};
  });
}

}  // namespace weft
