// SPDX-License-Identifier: Apache-2.0
#include "core/ops/maximum.h"

#include "core/autograd.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/where.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

namespace {

using Yields = Tensor(const Tensor&, const Tensor&);

/// `yields(x, z)`: where the result is z, equal to x or not. Not where one is NaN.
Tensor extremum(const char* op, kernels::Binary f, Yields* yields, const Tensor& left, const Tensor& right) {
  const OpScope scope(op);
  const auto [a, b, sizes] = operands(op, left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8)
    return extremum(op, f, yields, a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), f, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, op, {a, b}, [da, db, yields, saved_a = Saved(a), saved_b = Saved(b)](const Tensor& dy) {
    const Tensor x = saved_a, z = saved_b, zero = Tensor::zeros({}, dy.dtype(), dy.device());
    const Tensor of_ties = where(eq(x, z), affine(dy, 0.5, 0), zero);
    Grads grads(2);
    if (da) grads[0] = reduce_to(where(yields(x, z), of_ties, dy), x.sizes());
    if (db) grads[1] = reduce_to(where(yields(z, x), of_ties, dy), z.sizes());
    return grads;
  });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum("maximum", kernels::Binary::maximum, le, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum("minimum", kernels::Binary::minimum, ge, a, b); }

}  // namespace weft
