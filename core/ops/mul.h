// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = a b, element by element, with broadcasting and promotion (core/promotion.h).
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, double b);
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }

}  // namespace weft
