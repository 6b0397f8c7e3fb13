// SPDX-License-Identifier: Apache-2.0
#include "core/ops/special.h"

#include <numbers>

#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/copy.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/special.h"

namespace weft {
namespace {

using kernels::Special;

constexpr int kMostOrders = 100;

/// f, whose gradient is dy slope(saved): ops, so that it has derivatives, too. `saved` is x, or y of erfinv.
template <class Slope>
Tensor special(const char* op, Special f, const Tensor& x, const Slope& slope, int order = 0) {
  const OpScope scope(op);
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
  if (size_of(x.dtype()) == 2) return special(op, f, x.to(DType::f32), slope, order).to(x.dtype());
  const Tensor y = empty_like(x);
  kernels::special_forward(x.queue(), f, y, x, order);
  if (!wants_gradient(x)) return y;
  return differentiable(y, op, {x}, [slope, saved = Saved(f == Special::erfinv ? y : x)](const Tensor& dy) {
    return Grads{mul(dy, slope(saved.get()))};
  });
}

Tensor derivative(const char* op, int order, const Tensor& x) {
  const auto slope = [order](const Tensor& at) { return derivative("polygamma", order + 1, at); };
  return special(op, Special::polygamma, x, slope, order);
}

}  // namespace

Tensor erfc(const Tensor& x) {
  return special("erfc", Special::erfc, x,
                 [](const Tensor& at) { return affine(exp(neg(square(at))), -2 * std::numbers::inv_sqrtpi, 0); });
}

Tensor erfinv(const Tensor& x) {
  return special("erfinv", Special::erfinv, x,
                 [](const Tensor& y) { return affine(exp(square(y)), 0.5 / std::numbers::inv_sqrtpi, 0); });
}

Tensor lgamma(const Tensor& x) { return special("lgamma", Special::lgamma, x, digamma); }
Tensor digamma(const Tensor& x) { return derivative("digamma", 0, x); }

Tensor polygamma(Integer order, const Tensor& x) {
  WEFT_CHECK(order >= 0 && order <= kMostOrders, "polygamma: expected an order from 0 to ", kMostOrders, ", got ",
             order);
  return derivative("polygamma", static_cast<int>(order), x);
}

}  // namespace weft
