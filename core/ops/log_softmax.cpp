// SPDX-License-Identifier: Apache-2.0
#include "core/ops/log_softmax.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/softmax.h"

namespace weft {

Tensor log_softmax(const Tensor& input, int64_t dim) {
  WEFT_CHECK(input.defined() && input.is_floating(), "log_softmax: expected a floating tensor, got ", input);
  WEFT_CHECK(input.dim() > 0, "log_softmax: expected at least one dimension, got ", input);
  const int at = wrap_dim("log_softmax", dim, input.dim());
  if (at != input.dim() - 1) return log_softmax(input.transpose(at, -1)).transpose(at, -1);
  const OpScope scope("log_softmax");
  const Tensor x = autocast_full(input).contiguous();
  const Tensor y = empty_like(x);
  kernels::softmax_forward(y.queue(), y, x, /*log=*/true);
  if (!wants_gradient(x)) return y;
  return differentiable(y, "log_softmax", {x}, [y = Saved(y)](const Tensor& dy) {
    const Tensor dx = empty_like(dy);
    kernels::softmax_backward(dx.queue(), dx, dy.contiguous(), y, /*log=*/true);
    return Grads{dx};
  });
}

}  // namespace weft
