// SPDX-License-Identifier: Apache-2.0
#include "core/ops/div.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/ops/mul.h"
#include "core/ops/unary.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor div(const Tensor& left, const Tensor& right) {
  const OpScope scope("div");
  const auto [a, b, sizes] = operands("div", left, right);
  if (!a.is_floating()) return div(a.to(DType::f32), b.to(DType::f32));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::div, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  // y = a / b: da = dy / b, db = -dy y / b.
  return differentiable(
      y, "div", {a, b},
      [da, db, a_sizes = a.sizes(), b_sizes = b.sizes(), b = Saved(b), y = db ? Saved(y) : Saved()](const Tensor& dy) {
        const Tensor quotient = div(dy, b);
        Grads grads(2);
        if (da) grads[0] = reduce_to(quotient, a_sizes);
        if (db) grads[1] = reduce_to(affine(mul(quotient, y), -1, 0), b_sizes);
        return grads;
      });
}

Tensor div(const Tensor& a, double b) { return affine(a, 1 / b, 0); }
Tensor div(double a, const Tensor& b) {
  WEFT_CHECK(b.defined(), "div: expected a tensor, got none");
  return affine(reciprocal(b.to(promote_with_number(b.dtype()))), a, 0);
}

}  // namespace weft
