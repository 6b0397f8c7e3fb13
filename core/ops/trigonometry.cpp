// SPDX-License-Identifier: Apache-2.0
#include "core/ops/trigonometry.h"

#include <numbers>

#include "core/autograd.h"
#include "core/ops/arithmetic.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
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

/// f(x), whose gradient is dy / slope(x): the formula's own would be NaN where the slope is 0 (PyTorch: infinite).
template <class Function, class Slope>
Tensor by_slope(const char* op, const Tensor& x, const Function& f, Slope slope) {
  Tensor y;
  {
    const NoGrad no_grad;
    y = f(x.detach());
  }
  if (!wants_gradient(x)) return y;
  return differentiable(y, op, {x}, [x = Saved(x), slope](const Tensor& dy) { return Grads{div(dy, slope(x.get()))}; });
}

constexpr double kFar = 0x1p28;  // beyond it sqrt(x^2 ± 1) is x, and x^2 may be infinite

/// sqrt(1 - x^2).
Tensor opposite(const Tensor& x) { return sqrt(mul(1 - x, 1 + x)); }

}  // namespace

Tensor tan(const Tensor& x) {
  return in_full("tan", x, [](const Tensor& t) { return div(sin(t), cos(t)); });
}
Tensor asin(const Tensor& x) {
  return in_full("asin", x, [](const Tensor& t) {
    return by_slope("asin", t, [](const Tensor& at) { return atan2(at, opposite(at)); }, opposite);
  });
}
Tensor acos(const Tensor& x) {
  return in_full("acos", x, [](const Tensor& t) {
    return by_slope("acos", t, [](const Tensor& at) { return atan2(opposite(at), at); },
                    [](const Tensor& at) { return neg(opposite(at)); });
  });
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
    return by_slope(
        "asinh", t,
        [](const Tensor& at) {
          const Tensor s = abs(at), squares = square(s);
          const Tensor near = log1p(add(s, div(squares, 1 + sqrt(1 + squares))));
          return mul(sign(at), where(gt(s, kFar), log(s) + std::numbers::ln2, near));
        },
        [](const Tensor& at) { return sqrt(1 + square(at)); });
  });
}
Tensor acosh(const Tensor& x) {
  return in_full("acosh", x, [](const Tensor& t) {
    const auto leg = [](const Tensor& at) { return mul(sqrt(at - 1), sqrt(at + 1)); };  // NaN below 1
    return by_slope(
        "acosh", t,
        [leg](const Tensor& at) {
          return where(gt(abs(at), kFar), log(at) + std::numbers::ln2, log1p(add(at - 1, leg(at))));
        },
        leg);
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
