// SPDX-License-Identifier: Apache-2.0
#include "core/ops/maximum.h"

#include "core/autograd.h"
#include "core/ops/add.h"
#include "core/ops/affine.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/mul.h"
#include "core/trace.h"
#include "kernels/binary.h"

namespace weft {

namespace {

using Wins = Tensor(const Tensor&, const Tensor&);

/// `wins(x, z)`: where x is the result rather than z.
Tensor extremum(const char* op, kernels::Binary f, Wins* wins, const Tensor& left, const Tensor& right) {
  const OpScope scope(op);
  const auto [a, b, sizes] = operands(op, left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8)
    return extremum(op, f, wins, a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), f, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, op, {a, b}, [da, db, wins, saved_a = Saved(a), saved_b = Saved(b)](const Tensor& dy) {
    const Tensor x = saved_a, z = saved_b, tie = affine(mul(dy, eq(x, z)), 0.5, 0);
    Grads grads(2);
    if (da) grads[0] = reduce_to(add(mul(dy, wins(x, z)), tie), x.sizes());
    if (db) grads[1] = reduce_to(add(mul(dy, wins(z, x)), tie), z.sizes());
    return grads;
  });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extremum("maximum", kernels::Binary::maximum, gt, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremum("minimum", kernels::Binary::minimum, lt, a, b); }

}  // namespace weft
