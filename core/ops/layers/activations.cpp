// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/activations.h"

#include <cmath>

#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/random.h"
#include "core/ops/rearrange.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {
namespace {

void check_activation(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
}

}  // namespace

Tensor relu6(const Tensor& x) {
  const OpScope scope("relu6");
  check_activation("relu6", x);
  return clamp(x, 0, 6);
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  const OpScope scope("hardtanh");
  check_activation("hardtanh", x);
  return clamp(x, low, high);
}

Tensor hardsigmoid(const Tensor& x) {
  const OpScope scope("hardsigmoid");
  check_activation("hardsigmoid", x);
  return clamp(affine(x, 1.0 / 6, 0.5), 0, 1);
}

Tensor hardswish(const Tensor& x) {
  const OpScope scope("hardswish");
  return mul(x, hardsigmoid(x));
}

constexpr double kSeluAlpha = 1.6732632423543772848, kSeluScale = 1.0507009873554804934;

Tensor selu(const Tensor& x) {
  const OpScope scope("selu");
  return affine(elu(x, kSeluAlpha), kSeluScale, 0);
}

Tensor alpha_dropout(const Tensor& x, double p, bool training) {
  const OpScope scope("alpha_dropout");
  check_activation("alpha_dropout", x);
  WEFT_CHECK(p >= 0 && p <= 1, "alpha_dropout: expected p in [0, 1], got ", p);
  if (!training || p == 0) return x;
  if (p == 1) return affine(x, 0, 0);
  constexpr double kBound = kSeluAlpha * kSeluScale;
  const double scale = 1 / std::sqrt((1 - p) * (1 + p * kBound * kBound));
  const Tensor kept = ne(dropout(ones_like(x.detach()), p), 0);
  return where(kept, affine(x, scale, scale * kBound * p), scale * kBound * (p - 1));
}

Tensor celu(const Tensor& x, double alpha) {
  const OpScope scope("celu");
  check_activation("celu", x);
  WEFT_CHECK(alpha != 0, "celu: expected an alpha other than 0, got 0");
  const Tensor low = clamp(x, -INFINITY, 0);  // or else e^x of what is not used may be infinite
  return where(ge(x.detach(), 0), x, affine(expm1(affine(low, 1 / alpha, 0)), alpha, 0));
}

Tensor logsigmoid(const Tensor& x) {
  const OpScope scope("logsigmoid");
  return neg(softplus(neg(x)));
}

Tensor glu(const Tensor& x, Integer dim) {
  const OpScope scope("glu");
  check_activation("glu", x);
  const int64_t size = x.size(dim), half = size / 2;
  WEFT_CHECK(size % 2 == 0, "glu: expected an even size along dimension ", int64_t{dim}, ", got ", x);
  return mul(x.slice(dim, 0, half), sigmoid(x.slice(dim, half, half)));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  const OpScope scope("prelu");
  check_activation("prelu", x);
  WEFT_CHECK(
      weight.defined() && weight.dim() == 1 && (weight.size(0) == 1 || (x.dim() > 0 && weight.size(0) == x.size(-1))),
      "prelu: expected a weight [1] or of the last dimension's size, got ", weight, " for ", x);
  return where(gt(x.detach(), 0), x, mul(x, weight));
}

Tensor softshrink(const Tensor& x, double bound) {
  const OpScope scope("softshrink");
  check_activation("softshrink", x);
  WEFT_CHECK(bound >= 0, "softshrink: expected a bound of at least 0, got ", bound);
  return where(gt(abs(x.detach()), bound), sub(x, affine(sign(x.detach()), bound, 0)), affine(x, 0, 0));
}

Tensor hardshrink(const Tensor& x, double bound) {
  const OpScope scope("hardshrink");
  check_activation("hardshrink", x);
  return where(le(abs(x.detach()), bound), 0, x);
}

Tensor tanhshrink(const Tensor& x) {
  const OpScope scope("tanhshrink");
  return sub(x, tanh(x));
}

Tensor threshold(const Tensor& x, double bound, double value) {
  const OpScope scope("threshold");
  check_activation("threshold", x);
  return where(le(x.detach(), bound), value, x);
}

}  // namespace weft
