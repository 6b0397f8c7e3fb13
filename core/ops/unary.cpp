// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/unary_math.h"

namespace weft {

Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments) {
  const OpScope scope(op);
  WEFT_CHECK(x.defined() && (x.is_floating() || (kernels::unary_takes_integers(f) &&
                                                 (x.dtype() == DType::i64 || x.dtype() == DType::i32))),
             op, ": expected a floating tensor, got ", x);
  Tensor y = empty_like(x);
  kernels::unary_forward(x.queue(), f, y, x, arguments);
  if (!wants_gradient(x)) return y;
  return differentiable(y, op, {x},
                        [f, arguments, saved = Saved(kernels::unary_saves_output(f) ? y : x)](const Tensor& dy) {
                          Tensor dx = empty_like(dy);
                          kernels::unary_backward(dy.queue(), f, dx, dy, saved, arguments);
                          return Grads{dx};
                        });
}

}  // namespace weft
