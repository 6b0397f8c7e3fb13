// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/softmax.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/softmax.h"

namespace weft {
namespace {

Tensor apply(const char* op, const Tensor& input, int64_t dim, bool log) {
  WEFT_CHECK(input.defined() && input.is_floating(), op, ": expected a floating tensor, got ", input);
  WEFT_CHECK(input.dim() > 0, op, ": expected at least one dimension, got ", input);
  const int at = wrap_dim(op, dim, input.dim());
  if (at != input.dim() - 1) return apply(op, input.transpose(at, -1), -1, log).transpose(at, -1);
  const OpScope scope(op);
  const Tensor x = autocast_full(input).contiguous();
  const Tensor y = empty_like(x);
  kernels::softmax_forward(y.queue(), y, x, log);
  if (!wants_gradient(x)) return y;
  return differentiable(y, op, {x}, [y = Saved(y), log](const Tensor& dy) {
    if (grad_enabled()) {
      const Tensor p = y;
      if (log) return Grads{sub(dy, mul(exp(p), sum(dy, {-1}, true)))};
      return Grads{mul(p, sub(dy, sum(mul(dy, p), {-1}, true)))};
    }
    const Tensor dx = empty_like(dy);
    kernels::softmax_backward(dx.queue(), dx, dy.contiguous(), y, log);
    return Grads{dx};
  });
}

}  // namespace

Tensor softmax(const Tensor& x, Integer dim) { return apply("softmax", x, dim, /*log=*/false); }

Tensor log_softmax(const Tensor& x, Integer dim) { return apply("log_softmax", x, dim, /*log=*/true); }

}  // namespace weft
