// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// A number beside a tensor of integers: whole ones keep the dtype (u8 and bool count in i64), with others it becomes
// f32 (core/promotion.h). Errors: a whole number that the dtype does not hold.

/// y = a + alpha b with broadcasting and promotion (core/promotion.h). Errors: two devices, sizes that do not
/// broadcast; a fraction as alpha of integers.
Tensor add(const Tensor& a, const Tensor& b, Number alpha = 1);
Tensor add(const Tensor& a, Number b);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, Number b) { return add(a, b); }
inline Tensor operator+(Number a, const Tensor& b) { return add(b, a); }

/// y = a - b with broadcasting and promotion (core/promotion.h).
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, Number b);
Tensor sub(Number a, const Tensor& b);
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, Number b) { return sub(a, b); }
inline Tensor operator-(Number a, const Tensor& b) { return sub(a, b); }

/// y = a b, element by element, with broadcasting and promotion (core/promotion.h).
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, Number b);
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, Number b) { return mul(a, b); }
inline Tensor operator*(Number a, const Tensor& b) { return mul(b, a); }

/// y = a / b, element by element, with broadcasting; integers divide as f32.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, Number b);
Tensor div(Number a, const Tensor& b);
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, Number b) { return div(a, b); }
inline Tensor operator/(Number a, const Tensor& b) { return div(a, b); }

/// `x += y` is `x = x + y`, differentiable: x becomes another tensor, and those that shared its memory keep theirs. In
/// place is add_(). Errors: a leaf that requires a gradient, which would leave the model's weight as it is.
void check_may_become_another(const char* op, const Tensor& x);
#define WEFT_ASSIGNMENT(symbol)                                   \
  inline Tensor& operator symbol##=(Tensor& x, const Tensor& y) { \
    check_may_become_another(#symbol "=", x);                     \
    return x = x symbol y;                                        \
  }                                                               \
  inline Tensor& operator symbol##=(Tensor& x, Number y) {        \
    check_may_become_another(#symbol "=", x);                     \
    return x = x symbol y;                                        \
  }
WEFT_ASSIGNMENT(+)
WEFT_ASSIGNMENT(-)
WEFT_ASSIGNMENT(*)
WEFT_ASSIGNMENT(/)
#undef WEFT_ASSIGNMENT

/// y = x^exponent, element by element, as IEEE 754's pow. Errors: integers to a negative whole power.
Tensor pow(const Tensor& x, Number exponent);
/// y = a^b with broadcasting. The gradient of b is a^b log(a), but 0 where a = 0 and b >= 0 (0^0 included).
Tensor pow(const Tensor& a, const Tensor& b);

/// y = the larger of a and b, element by element, with broadcasting; NaN wins. Equal elements share the gradient; at
/// NaN both get all.
Tensor maximum(const Tensor& a, const Tensor& b);

/// The smaller of a and b, otherwise as maximum.
Tensor minimum(const Tensor& a, const Tensor& b);

}  // namespace weft
