// SPDX-License-Identifier: Apache-2.0
#include "core/ops/unary.h"

#include "core/autograd.h"
#include "core/backward_context.h"
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

}  // namespace

Tensor unary(const char* op, kernels::Unary f, const Tensor& x, kernels::UnaryArguments arguments) {
  const OpScope scope(op);
  WEFT_CHECK(x.defined() && (x.is_floating() || (kernels::unary_takes_integers(f) &&
                                                 (x.dtype() == DType::i64 || x.dtype() == DType::i32))),
             op, ": expected a floating tensor, got ", x);
  Tensor y = empty_like(x);
  kernels::unary_forward(x.queue(), f, y, x, arguments);
  if (!wants_gradient(x)) return y;
  const Tensor kept = kernels::unary_saves_output(f) ? y : x;
  const auto backward = [f, arguments, saved = Saved(kept)](const Tensor& dy) {
    Tensor dx = empty_like(dy);
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
