// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = a + alpha b with broadcasting and promotion (core/promotion.h). Errors: two devices, sizes that do not
/// broadcast.
Tensor add(const Tensor& a, const Tensor& b, double alpha = 1);
Tensor add(const Tensor& a, double b);
inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }

/// y = a - b with broadcasting and promotion (core/promotion.h).
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, double b);
Tensor sub(double a, const Tensor& b);
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
inline Tensor operator-(double a, const Tensor& b) { return sub(a, b); }

/// y = a b, element by element, with broadcasting and promotion (core/promotion.h).
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }

/// y = a / b, element by element, with broadcasting; integers divide as f32.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, double b);
Tensor div(double a, const Tensor& b);
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
inline Tensor operator/(double a, const Tensor& b) { return div(a, b); }

/// y = x^exponent, element by element, as IEEE 754's pow. Integers become f32.
Tensor pow(const Tensor& x, double exponent);
/// y = a^b with broadcasting. The gradient of b is a^b log(a), but 0 where a = 0 and b >= 0 (0^0 included).
Tensor pow(const Tensor& a, const Tensor& b);

/// y = the larger of a and b, element by element, with broadcasting; NaN wins. Equal elements share the gradient; at
/// NaN both get all.
Tensor maximum(const Tensor& a, const Tensor& b);

/// The smaller of a and b, otherwise as maximum.
Tensor minimum(const Tensor& a, const Tensor& b);

}  // namespace weft
