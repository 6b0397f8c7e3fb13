// SPDX-License-Identifier: Apache-2.0
#include "core/ops/minimum.h"

#include "core/autograd.h"
#include "core/ops/add.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/mul.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

Tensor minimum(const Tensor& left, const Tensor& right) {
  const OpScope scope("minimum");
  const auto [a, b, sizes] = operands("minimum", left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return minimum(a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::minimum, y, broadcast_view(a, sizes), broadcast_view(b, sizes),
                          1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, "minimum", {a, b}, [da, db, saved_a = Saved(a), saved_b = Saved(b)](const Tensor& dy) {
    const Tensor x = saved_a, z = saved_b, tie = affine(mul(dy, eq(x, z)), 0.5, 0);
    Grads grads(2);
    if (da) grads[0] = reduce_to(add(mul(dy, lt(x, z)), tie), x.sizes());
    if (db) grads[1] = reduce_to(add(mul(dy, lt(z, x)), tie), z.sizes());
    return grads;
  });
}

}  // namespace weft
