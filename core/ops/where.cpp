// SPDX-License-Identifier: Apache-2.0
#include "core/ops/where.h"

#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor where(const Tensor& condition, const Tensor& left, const Tensor& right) {
  const OpScope scope("where");
  WEFT_CHECK(condition.defined() && condition.dtype() == DType::boolean, "where: expected a bool condition, got ",
             condition);
  const auto [a, b, both] = operands("where", left, right);
  WEFT_CHECK(condition.device() == a.device(), "where: expected tensors on one device, got ", condition, " and ", a);
  const Shape sizes = broadcast_shapes("where", condition.sizes(), both);
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::where(y.queue(), y, broadcast_view(condition, sizes), broadcast_view(a, sizes), broadcast_view(b, sizes));
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(
      y, "where", {a, b},
      [da, db, chosen = Saved(condition), a_sizes = a.sizes(), b_sizes = b.sizes()](const Tensor& dy) {
        const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device());
        Grads grads(2);
        if (da) grads[0] = reduce_to(where(chosen, dy, zero), a_sizes);
        if (db) grads[1] = reduce_to(where(chosen, zero, dy), b_sizes);
        return grads;
      });
}

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  WEFT_CHECK(a.defined(), "where: expected a tensor, got none");
  return where(condition, a, Tensor::full({}, b, a.dtype(), a.device()));
}

Tensor where(const Tensor& condition, double a, const Tensor& b) {
  WEFT_CHECK(b.defined(), "where: expected a tensor, got none");
  return where(condition, Tensor::full({}, a, b.dtype(), b.device()), b);
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return where(mask, value, x); }

}  // namespace weft
