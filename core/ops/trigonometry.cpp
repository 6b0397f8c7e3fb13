// SPDX-License-Identifier: Apache-2.0
#include "core/ops/trigonometry.h"

#include <numbers>

#include "core/ops/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

namespace {

void check_number(const char* op, const Tensor& x) {
  WEFT_CHECK(x.defined() && x.is_floating(), op, ": expected a floating tensor, got ", x);
}

/// The function of x, which 16-bit numbers have in f32: intermediate results would be rounded.
template <class Function>
Tensor in_full(const char* op, const Tensor& x, const Function& f) {
  const OpScope scope(op);
  check_number(op, x);
  return x.dtype() == DType::bf16 || x.dtype() == DType::f16 ? f(x.to(DType::f32)).to(x.dtype()) : f(x);
}

Tensor number(double value, const Tensor& like) { return Tensor::full({}, value, like.dtype(), like.device()); }

/// sqrt(1 - x^2).
Tensor opposite(const Tensor& x) { return sqrt(mul(1 - x, 1 + x)); }

}  // namespace

Tensor tan(const Tensor& x) {
  return in_full("tan", x, [](const Tensor& t) { return div(sin(t), cos(t)); });
}
Tensor asin(const Tensor& x) {
  return in_full("asin", x, [](const Tensor& t) { return atan2(t, opposite(t)); });
}
Tensor acos(const Tensor& x) {
  return in_full("acos", x, [](const Tensor& t) { return atan2(opposite(t), t); });
}
Tensor atan(const Tensor& x) {
  return in_full("atan", x, [](const Tensor& t) { return atan2(t, number(1, t)); });
}
Tensor sinh(const Tensor& x) {
  return in_full("sinh", x, [](const Tensor& t) { return affine(sub(expm1(t), expm1(neg(t))), 0.5, 0); });
}
Tensor cosh(const Tensor& x) {
  return in_full("cosh", x, [](const Tensor& t) { return affine(add(exp(t), exp(neg(t))), 0.5, 0); });
}
Tensor asinh(const Tensor& x) {  // log(s + sqrt(s^2 + 1)) of s = |x|, whose argument less 1 is exact near 0
  return in_full("asinh", x, [](const Tensor& t) {
    const Tensor s = abs(t), squares = square(s);
    return mul(sign(t.detach()), log1p(add(s, div(squares, 1 + sqrt(1 + squares)))));
  });
}
Tensor acosh(const Tensor& x) {
  return in_full("acosh", x, [](const Tensor& t) {
    const Tensor beyond = t - 1;
    return log1p(add(beyond, sqrt(mul(beyond, t + 1))));
  });
}
Tensor atanh(const Tensor& x) {
  return in_full("atanh", x, [](const Tensor& t) { return affine(sub(log1p(t), log1p(neg(t))), 0.5, 0); });
}
Tensor exp2(const Tensor& x) {
  return in_full("exp2", x, [](const Tensor& t) { return pow(number(2, t), t); });
}
Tensor log2(const Tensor& x) {
  return in_full("log2", x, [](const Tensor& t) { return affine(log(t), 1 / std::numbers::ln2, 0); });
}
Tensor log10(const Tensor& x) {
  return in_full("log10", x, [](const Tensor& t) { return affine(log(t), 1 / std::numbers::ln10, 0); });
}
Tensor trunc(const Tensor& x) {
  return in_full("trunc", x, [](const Tensor& t) { return mul(sign(t.detach()), floor(abs(t))); });
}

}  // namespace weft
