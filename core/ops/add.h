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

}  // namespace weft
