// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include <cmath>
#include <numbers>

#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/promotion.h"
#include "core/trace.h"

namespace weft {
namespace {

/// The function as what a product's epilogue may apply.
kernels::Activation activation_of(kernels::Unary f) {
  using kernels::Activation;
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::gelu_tanh})
    if (kernels::unary_of(activation) == f) return activation;
  return Activation::none;
}

/// dy f'(x) by ops, for second derivatives. `saved` is x, or y as for unary_backward. Undefined: not known.
Tensor gradient_by_ops(kernels::Unary f, const Tensor& dy, const Tensor& saved, kernels::UnaryArguments arguments) {
  using kernels::Unary;
  if (size_of(dy.dtype()) == 2)
    return gradient_by_ops(f, dy.to(DType::f32), saved.to(DType::f32), arguments).to(dy.dtype());
  const Tensor &x = saved, &y = saved, constant = saved.detach();
  const auto [a, b] = arguments;
  const auto times = [&](const Tensor& slope) { return mul(dy, slope); };
  const auto one_minus = [](const Tensor& t) { return affine(t, -1, 1); };
  switch (f) {
    case Unary::affine:
      return affine(dy, a, 0);
    case Unary::neg:
      return neg(dy);
    case Unary::abs:
      return times(sign(constant));
    case Unary::sign:
    case Unary::floor:
    case Unary::ceil:
    case Unary::round:
      return affine(dy, 0, 0);
    case Unary::square:
      return times(affine(x, 2, 0));
    case Unary::sqrt:
      return affine(div(dy, y), 0.5, 0);
    case Unary::rsqrt:
      return affine(times(mul(y, square(y))), -0.5, 0);
    case Unary::reciprocal:
      return neg(times(square(y)));
    case Unary::exp:
      return times(y);
    case Unary::log:
      return div(dy, x);
    case Unary::sin:
      return times(cos(x));
    case Unary::cos:
      return neg(times(sin(x)));
    case Unary::pow:
      return a.value() == 0 ? affine(dy, 0, 0) : affine(times(pow(x, a.value() - 1)), a, 0);
    case Unary::clamp:
      return where(logical_and(gt(constant, a), lt(constant, b)), dy, 0);
    case Unary::relu:
      return where(le(constant, 0), 0, dy);
    case Unary::leaky_relu:
      return where(gt(constant, 0), dy, affine(dy, a, 0));
    case Unary::sigmoid:
      return times(mul(y, one_minus(y)));
    case Unary::tanh:
      return times(one_minus(square(y)));
    case Unary::gelu: {  // Phi(x) + x phi(x)
      const Tensor phi = affine(exp(affine(square(x), -0.5, 0)), 1 / std::sqrt(2 * std::numbers::pi), 0);
      return times(add(affine(erf(affine(x, 1 / std::numbers::sqrt2, 0)), 0.5, 0.5), mul(x, phi)));
    }
    case Unary::gelu_tanh: {  // y = x (1 + t) / 2, t = tanh(c (x + k x^3))
      const double c = std::sqrt(2 / std::numbers::pi), k = 0.044715;
      const Tensor squares = square(x), t = tanh(mul(x, affine(squares, c * k, c)));
      const Tensor of_t = mul(one_minus(square(t)), mul(x, affine(squares, 3 * c * k, c)));
      return times(affine(add(t, of_t), 0.5, 0.5));
    }
    case Unary::log1p:
      return div(dy, affine(x, 1, 1));
    case Unary::expm1:
      return times(affine(y, 1, 1));
    case Unary::erf:
      return affine(times(exp(neg(square(x)))), 2 * std::numbers::inv_sqrtpi, 0);
    case Unary::silu: {
      const Tensor s = sigmoid(x);
      return times(mul(s, affine(mul(x, one_minus(s)), 1, 1)));
    }
    case Unary::softplus:
      return times(sigmoid(x));
    case Unary::mish: {
      const Tensor t = tanh(softplus(x));
      return times(add(t, mul(mul(x, sigmoid(x)), one_minus(square(t)))));
    }
    case Unary::elu:  // clamped, or else exp of what is not used may be infinite
      return where(gt(constant, 0), dy, affine(times(exp(clamp(x, -INFINITY, 0))), a, 0));
    default:
      return {};
  }
}

}  // namespace

Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments) {
  const OpScope scope(op);
  const bool integers = kernels::unary_takes_integers(f);
  WEFT_CHECK(x.defined() && (x.is_floating() || (integers && (x.dtype() == DType::i64 || x.dtype() == DType::i32))), op,
             ": expected a floating tensor", integers ? ", or one of i64 or i32" : "", ", got ", x,
             x.defined() ? ". Convert it with to(dtype)" : "");
  Tensor y = empty_like(x);
  kernels::unary_forward(x.queue(), f, y, x, arguments);
  if (!wants_gradient(x)) return y;
  const Tensor kept = kernels::unary_saves_output(f) ? y : x;
  const auto backward = [f, arguments, saved = Saved(kept)](const Tensor& dy) {
    Tensor dx = grad_enabled() ? gradient_by_ops(f, dy, saved, arguments) : Tensor();
    if (dx.defined()) return Grads{dx};
    dx = empty_like(dy);
    kernels::unary_backward(dy.queue(), f, dx, dy, saved, arguments);
    return Grads{dx};
  };
  const kernels::Activation activation = activation_of(f);
  if (activation == kernels::Activation::none) return differentiable(y, op, {x}, backward);
  return differentiable_activation(y, op, {x}, activation, kept,
                                   [backward](const Tensor& dy, BackwardContext& context) {
                                     return context.activation_is_taken() ? Grads{dy} : backward(dy);
                                   });
}

#define WEFT_ROW(name, ...) \
  Tensor name(const Tensor& x) { return unary(#name, kernels::Unary::name, x); }
WEFT_UNARY_TABLE(WEFT_ROW, WEFT_NO_ROW)
#undef WEFT_ROW

Tensor affine(const Tensor& x, Number scale, Number shift) {
  WEFT_CHECK(x.defined(), "affine: expected a tensor, got none");
  return unary("affine", kernels::Unary::affine, x.to(promote(x.dtype(), scale.is_whole() ? shift : scale)),
               {scale, shift});
}

Tensor clamp(const Tensor& given, Number low, Number high) {
  WEFT_CHECK(given.defined(), "clamp: expected a tensor, got none");
  WEFT_CHECK(low.is_whole() && high.is_whole() ? static_cast<int64_t>(low) <= static_cast<int64_t>(high)
                                               : low.value() <= high.value(),
             "clamp: expected low <= high, got ", low, " and ", high);
  Tensor x = given;
  if (!x.is_floating() && !(low.is_whole() && high.is_whole())) x = x.to(DType::f32);
  for (const Number bound : {low, high})
    if (bound.is_whole()) check_holds("clamp", x.dtype(), bound);
  return unary("clamp", kernels::Unary::clamp, x, {low, high});
}

Tensor elu(const Tensor& x, double alpha) { return unary("elu", kernels::Unary::elu, x, {alpha, 0}); }

Tensor leaky_relu(const Tensor& x, double slope) {
  return unary("leaky_relu", kernels::Unary::leaky_relu, x, {slope, 0});
}

Tensor gelu(const Tensor& x, Gelu approximate) {
  return unary("gelu", approximate == Gelu::erf ? kernels::Unary::gelu : kernels::Unary::gelu_tanh, x);
}

}  // namespace weft
