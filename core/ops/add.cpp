// SPDX-License-Identifier: Apache-2.0
#include "core/ops/add.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor add(const Tensor& left, const Tensor& right, double alpha) {
  const OpScope scope("add");
  const auto [a, b, sizes] = operands("add", left, right);
  // bool has no sum of its own: it counts as i64.
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return add(a.to(DType::i64), b.to(DType::i64), alpha);
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::add, y, broadcast_view(a, sizes), broadcast_view(b, sizes),
                          alpha);
  if (!wants_gradient(a) && !wants_gradient(b)) return y;
  const bool da = wants_gradient(a), db = wants_gradient(b);
  return differentiable(y, "add", {a, b}, [da, db, alpha, a_sizes = a.sizes(), b_sizes = b.sizes()](const Tensor& dy) {
    Grads grads(2);
    if (da) grads[0] = reduce_to(dy, a_sizes);
    if (db) grads[1] = reduce_to(alpha == 1 ? dy : affine(dy, alpha, 0), b_sizes);
    return grads;
  });
}

Tensor add(const Tensor& a, double b) { return affine(a, 1, b); }

}  // namespace weft
