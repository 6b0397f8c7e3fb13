// SPDX-License-Identifier: Apache-2.0
#include "core/ops/binary.h"

#include "core/autograd.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/unary.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"

namespace weft {

namespace {

/// x, where it may be combined with the number: y = scale x + shift.
const Tensor& beside(const char* op, const Tensor& x, Number number) {
  WEFT_CHECK(x.defined(), op, ": expected a tensor, got none");
  if (number.is_whole()) check_holds(op, promote(x.dtype(), number), number);
  return x;
}

/// The quotient of integers, or one of them a number, is rounded once: a product with 1 / b would round twice.
Tensor as_f32(const Tensor& x, Number number) { return Tensor::full({}, number, DType::f32, x.device()); }

}  // namespace

Tensor add(const Tensor& left, const Tensor& right, Number alpha) {
  const OpScope scope("add");
  const auto [a, b, sizes] = operands("add", left, right);
  if (!a.is_floating()) check_holds("add", DType::i64, alpha);
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
    if (db) grads[1] = reduce_to(alpha.value() == 1 ? dy : affine(dy, alpha, 0), b_sizes);
    return grads;
  });
}

Tensor add(const Tensor& a, Number b) { return affine(beside("add", a, b), 1, b); }

Tensor sub(const Tensor& a, const Tensor& b) { return add(a, b, -1); }
Tensor sub(const Tensor& a, Number b) { return affine(beside("sub", a, b), 1, -b); }
Tensor sub(Number a, const Tensor& b) { return affine(beside("sub", b, a), -1, a); }

Tensor mul(const Tensor& left, const Tensor& right) {
  const OpScope scope("mul");
  const auto [a, b, sizes] = operands("mul", left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return mul(a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::mul, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, "mul", {a, b},
                        [a_sizes = a.sizes(), b_sizes = b.sizes(), a = db ? Saved(a) : Saved(),
                         b = da ? Saved(b) : Saved()](const Tensor& dy) {
                          Grads grads(2);
                          if (b) grads[0] = reduce_to(mul(dy, b), a_sizes);
                          if (a) grads[1] = reduce_to(mul(dy, a), b_sizes);
                          return grads;
                        });
}

Tensor mul(const Tensor& a, Number b) { return affine(beside("mul", a, b), b, 0); }

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

Tensor div(const Tensor& a, Number b) {
  WEFT_CHECK(a.defined(), "div: expected a tensor, got none");
  return a.is_floating() ? affine(a, 1 / b.value(), 0) : div(a, as_f32(a, b));
}
Tensor div(Number a, const Tensor& b) {
  WEFT_CHECK(b.defined(), "div: expected a tensor, got none");
  return b.is_floating() ? affine(reciprocal(b), a, 0) : div(as_f32(b, a), b);
}

Tensor pow(const Tensor& x, Number exponent) {
  WEFT_CHECK(x.defined(), "pow: expected a tensor, got none");
  const DType dtype = promote(x.dtype(), exponent);
  if (is_floating(dtype)) return unary("pow", kernels::Unary::pow, x.to(dtype), {exponent, 0});
  WEFT_CHECK(exponent.value() >= 0, "pow: expected integers to a power of at least 0, got ", exponent, " for ", x,
             ". Use x.to(DType::f32)");
  return pow(x, Tensor::full({}, exponent, dtype, x.device()));
}

Tensor pow(const Tensor& left, const Tensor& right) {
  const OpScope scope("pow");
  const auto [a, b, sizes] = operands("pow", left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8) return pow(a.to(DType::i64), b.to(DType::i64));
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), kernels::Binary::pow, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  // da = dy b a^(b - 1), db = dy a^b log(a), which has the limit 0 where a = 0 and b >= 0.
  return differentiable(
      y, "pow", {a, b},
      [da, db, saved_a = Saved(a), saved_b = Saved(b), saved_y = db ? Saved(y) : Saved()](const Tensor& dy) {
        const Tensor base = saved_a, exponent = saved_b;
        Grads grads(2);
        if (da) {
          const Tensor slope = mul(exponent, pow(base, affine(exponent, 1, -1)));
          const Tensor zero = Tensor::zeros({}, dy.dtype(), dy.device());
          grads[0] = reduce_to(mul(dy, where(eq(exponent, 0.0), zero, slope)), base.sizes());
        }
        if (db) {
          const Tensor power = saved_y, zero = Tensor::zeros({}, dy.dtype(), dy.device());
          const Tensor slope = where(logical_and(eq(base, 0.0), ge(exponent, 0.0)), zero, mul(power, log(base)));
          grads[1] = reduce_to(mul(dy, slope), exponent.sizes());
        }
        return grads;
      });
}

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

void check_may_become_another(const char* op, const Tensor& x) {
  WEFT_CHECK(!x.defined() || !x.is_leaf() || !x.requires_grad(), "operator", op, ": ", x,
             " is a leaf that requires a gradient: the variable would leave its weight. Use add_ or mul_ under NoGrad");
}

}  // namespace weft
