// SPDX-License-Identifier: Apache-2.0
#include "core/ops/arithmetic.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/broadcast.h"
#include "core/ops/compare.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/trigonometry.h"
#include "core/ops/unary.h"
#include "core/promotion.h"
#include "core/trace.h"
#include "kernels/contracts/binary.h"

namespace weft {
namespace {

Tensor of_two(kernels::Binary f, const Tensor& a, const Tensor& b, const Shape& sizes) {
  Tensor y = Tensor::empty(sizes, a.dtype(), a.device());
  kernels::binary_forward(y.queue(), f, y, broadcast_view(a, sizes), broadcast_view(b, sizes), 1);
  return y;
}

/// a - b round(a / b), where `rounded` rounds.
Tensor rest(const char* op, kernels::Binary f, Tensor (*rounded)(const Tensor&), const Tensor& left,
            const Tensor& right) {
  const OpScope scope(op);
  const auto [a, b, sizes] = operands(op, left, right);
  if (a.dtype() == DType::boolean || a.dtype() == DType::u8)
    return rest(op, f, rounded, a.to(DType::i64), b.to(DType::i64));
  const Tensor y = of_two(f, a, b, sizes);
  const bool da = wants_gradient(a), db = wants_gradient(b);
  if (!da && !db) return y;
  return differentiable(y, op, {a, b},
                        [da, rounded, a_sizes = a.sizes(), a = db ? Saved(a) : Saved(), b = db ? Saved(b) : Saved(),
                         b_sizes = b.sizes()](const Tensor& dy) {
                          Grads grads(2);
                          if (da) grads[0] = reduce_to(dy, a_sizes);
                          if (b) grads[1] = reduce_to(neg(mul(dy, rounded(div(a.get(), b.get()).detach()))), b_sizes);
                          return grads;
                        });
}

void check_floating(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
}

/// operands() of floating tensors.
auto floating_operands(const char* op, const Tensor& left, const Tensor& right) {
  auto both = operands(op, left, right);
  WEFT_CHECK(both.a.is_floating(), op, ": expected floating tensors, got ", left, " and ", right);
  return both;
}

Tensor of_numbers(const char* op, Tensor (*f)(const Tensor&, const Tensor&), const Tensor& left, const Tensor& right) {
  const OpScope scope(op);
  const auto [a, b, sizes] = operands(op, left, right);
  const Tensor y = f(a, b);
  return a.is_floating() ? where(isnan(a.detach()), b, where(isnan(b.detach()), a, y)) : y;
}

Tensor number_like(const char* op, const Tensor& x, Number b) {
  WEFT_CHECK(x.defined(), op, ": expected a tensor, got none");
  return Tensor::full({}, b, promote(x.dtype(), b), x.device());
}

}  // namespace

Tensor atan2(const Tensor& left, const Tensor& right) {
  const OpScope scope("atan2");
  const auto [a, b, sizes] = operands("atan2", left, right);
  if (!a.is_floating()) return atan2(a.to(DType::f32), b.to(DType::f32));
  const Tensor y = of_two(kernels::Binary::atan2, a, b, sizes);
  if (!wants_gradient(a) && !wants_gradient(b)) return y;
  return differentiable(y, "atan2", {a, b},
                        [da = wants_gradient(a), db = wants_gradient(b), a = Saved(a), b = Saved(b)](const Tensor& dy) {
                          const Tensor squares = add(square(a.get()), square(b.get()));
                          const Tensor slope = div(dy, where(eq(squares.detach(), 0), 1, squares));
                          Grads grads(2);
                          if (da) grads[0] = reduce_to(mul(slope, b), a.get().sizes());
                          if (db) grads[1] = reduce_to(neg(mul(slope, a)), b.get().sizes());
                          return grads;
                        });
}

Tensor fmod(const Tensor& a, const Tensor& b) { return rest("fmod", kernels::Binary::fmod, trunc, a, b); }
Tensor fmod(const Tensor& a, Number b) { return fmod(a, number_like("fmod", a, b)); }
Tensor remainder(const Tensor& a, const Tensor& b) {
  return rest("remainder", kernels::Binary::remainder, floor, a, b);
}
Tensor remainder(const Tensor& a, Number b) { return remainder(a, number_like("remainder", a, b)); }

Tensor lerp(const Tensor& a, const Tensor& b, Number weight) {
  const OpScope scope("lerp");
  WEFT_CHECK(a.defined() && b.defined() && (a.is_floating() || b.is_floating() || weight.is_whole()),
             "lerp: expected floating tensors, got ", a, " and ", b, ". Convert one with to(dtype)");
  if (std::abs(weight.value()) < 0.5) return add(a, sub(b, a), weight);
  return add(b, sub(a, b), weight.is_whole() ? Number(1 - static_cast<int64_t>(weight)) : Number(1 - weight.value()));
}
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  const OpScope scope("lerp");
  WEFT_CHECK(weight.defined(), "lerp: expected a weight, got none");
  const Tensor apart = sub(b, a);  // a weight of 1 gives b, of 0 gives a
  return where(lt(abs(weight.detach()), 0.5), add(a, mul(weight, apart)), sub(b, mul(1 - weight, apart)));
}

Tensor logaddexp(const Tensor& left, const Tensor& right) {
  const OpScope scope("logaddexp");
  const auto [a, b, sizes] = floating_operands("logaddexp", left, right);
  const auto apart = [](const Tensor& x, const Tensor& y) {
    const Tensor infinite = logical_and(eq(x.detach(), y.detach()), isinf(x.detach()));  // inf - inf is NaN
    return where(infinite, 0, sub(x, y));
  };
  const bool da = wants_gradient(a), db = wants_gradient(b);
  Tensor y;
  {
    const NoGrad no_grad;
    y = add(maximum(a, b), log1p(exp(neg(abs(apart(a, b))))));
  }
  if (!da && !db) return y;
  // The forward's abs has a corner at a = b, and would lose the curvature there.
  return differentiable(y, "logaddexp", {a, b}, [da, db, apart, a = Saved(a), b = Saved(b)](const Tensor& dy) {
    const Tensor x = apart(a, b);
    Grads grads(2);
    if (da) grads[0] = reduce_to(mul(dy, sigmoid(x)), a.get().sizes());
    if (db) grads[1] = reduce_to(mul(dy, sigmoid(neg(x))), b.get().sizes());
    return grads;
  });
}

Tensor hypot(const Tensor& left, const Tensor& right) {
  const OpScope scope("hypot");
  const auto [a, b, sizes] = floating_operands("hypot", left, right);
  const Tensor largest = maximum(abs(a.detach()), abs(b.detach()));
  const Tensor zero = eq(largest, 0), infinite = logical_or(isinf(a.detach()), isinf(b.detach()));
  const Tensor size = where(logical_or(zero, infinite), 1, largest);
  const Tensor squares = add(square(div(a, size)), square(div(b, size)));
  return where(infinite, INFINITY, where(zero, 0, mul(size, sqrt(where(logical_or(zero, infinite), 1, squares)))));
}

Tensor copysign(const Tensor& left, const Tensor& right) {
  const OpScope scope("copysign");
  const auto [a, b, sizes] = floating_operands("copysign", left, right);
  const Tensor sign_of = b.detach();
  const Tensor negative = logical_or(lt(sign_of, 0), eq(reciprocal(sign_of), -INFINITY));
  return mul(abs(a), where(negative, -1, ones_like(sign_of)));
}

Tensor xlogy(const Tensor& left, const Tensor& right) {
  const OpScope scope("xlogy");
  const auto [x, y, sizes] = floating_operands("xlogy", left, right);
  const Tensor value = y.detach();
  const Tensor counts_for_nothing = logical_and(eq(x.detach(), 0), logical_or(le(value, 0), eq(value, INFINITY)));
  return mul(x, log(where(counts_for_nothing, 1, y)));
}

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  const OpScope scope("addcmul");
  return add(x, mul(a, b), value);
}
Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, Number value) {
  const OpScope scope("addcdiv");
  return add(x, div(a, b), value);
}

Tensor logit(const Tensor& x, double margin) {
  const OpScope scope("logit");
  check_floating("logit", x);
  WEFT_CHECK(margin >= 0 && margin <= 0.5, "logit: expected a margin from 0 to 0.5, got ", margin);
  const Tensor p = margin > 0 ? clamp(x, margin, 1 - margin) : x;
  return sub(log(p), log1p(neg(p)));
}

Tensor sinc(const Tensor& x) {
  const OpScope scope("sinc");
  check_floating("sinc", x);
  if (size_of(x.dtype()) == 2) return sinc(x.to(DType::f32)).to(x.dtype());  // pi x has more digits
  const Tensor angle = affine(x, std::numbers::pi, 0), small = lt(abs(angle.detach()), 0.25);
  const Tensor q = square(where(small, angle, 0)), large = where(small, 1, angle);
  // Where sin(a) / a would cancel in derivatives: sum of (-1)^k a^2k / (2k + 1)!. The next term is below 2e-17.
  Tensor series = ones_like(q);
  for (int k = 5; k >= 1; --k) series = affine(mul(series, q), -1.0 / (2 * k * (2 * k + 1)), 1);
  return where(small, series, div(sin(large), large));
}

Tensor fmax(const Tensor& a, const Tensor& b) { return of_numbers("fmax", maximum, a, b); }
Tensor fmin(const Tensor& a, const Tensor& b) { return of_numbers("fmin", minimum, a, b); }

Tensor heaviside(const Tensor& left, const Tensor& right) {
  const OpScope scope("heaviside");
  const NoGrad no_grad;
  const auto [x, at_zero, sizes] = operands("heaviside", left, right);
  return where(eq(x, 0), at_zero, gt(x, 0).to(x.dtype()));
}

Tensor frac(const Tensor& x) {
  const OpScope scope("frac");
  check_floating("frac", x);
  return sub(x, trunc(x));
}

Tensor deg2rad(const Tensor& degrees) { return affine(degrees, std::numbers::pi / 180, 0); }
Tensor rad2deg(const Tensor& radians) { return affine(radians, 180 / std::numbers::pi, 0); }

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> infinity,
                  std::optional<double> negative_infinity) {
  const OpScope scope("nan_to_num");
  check_floating("nan_to_num", x);
  const double most = x.dtype() == DType::f64    ? std::numeric_limits<double>::max()
                      : x.dtype() == DType::f32  ? static_cast<double>(std::numeric_limits<float>::max())
                      : x.dtype() == DType::bf16 ? 0x1.FEp127
                                                 : 65504;
  const Tensor value = x.detach();
  const Tensor finite = where(isnan(value), nan, x);
  const Tensor below = where(eq(value, INFINITY), infinity.value_or(most), finite);
  return where(eq(value, -INFINITY), negative_infinity.value_or(-most), below);
}

Tensor isclose(const Tensor& left, const Tensor& right, double relative, double absolute) {
  const OpScope scope("isclose");
  const NoGrad no_grad;
  const auto [a, b, sizes] = operands("isclose", left, right);
  const Tensor allowed = affine(abs(b.is_floating() ? b : b.to(DType::f64)), relative, absolute);
  const Tensor apart = abs(a.is_floating() ? sub(a, b) : sub(a.to(DType::f64), b.to(DType::f64)));
  return logical_or(eq(a, b), logical_and(le(apart, allowed), isfinite(apart)));
}
bool allclose(const Tensor& a, const Tensor& b, double relative, double absolute) {
  return static_cast<bool>(all(isclose(a, b, relative, absolute)));
}
bool equal(const Tensor& a, const Tensor& b) {
  const OpScope scope("equal");
  WEFT_CHECK(a.defined() && b.defined(), "equal: expected two tensors, got ", a, " and ", b);
  return a.sizes() == b.sizes() && static_cast<bool>(all(eq(a, b)));
}

}  // namespace weft
