// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// Functions of x, element by element, that have no elementary form: within a few units in the last place of x's dtype,
// and with all derivatives. Errors: x is not floating.

/// 1 - erf(x), also where erf(x) rounds to 1.
Tensor erfc(const Tensor& x);
/// The y with erf(y) = x; infinite at 1 and -1, NaN beyond.
Tensor erfinv(const Tensor& x);
/// log |Gamma(x)|.
Tensor lgamma(const Tensor& x);
/// The slope of lgamma().
Tensor digamma(const Tensor& x);
/// Derivative `order` of digamma(). Errors: an order outside of 0 to 100.
Tensor polygamma(Integer order, const Tensor& x);

}  // namespace weft
