// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// Elementwise functions that have no elementary form, and whose derivatives are ops (core/ops/special.h).
enum class Special : uint8_t {
  erfc,       ///< 1 - erf(x), also where erf(x) rounds to 1
  erfinv,     ///< the y with erf(y) = x; infinite at 1 and -1, NaN beyond
  lgamma,     ///< log |Gamma(x)|
  polygamma,  ///< derivative `order` + 1 of lgamma
};

/// y = f(x). Same sizes, same floating dtype, any strides. Computed in f64. `order`, from 0 to 100: of polygamma.
WEFT_KERNEL(special_forward, const Queue& queue, Special f, const View& y, const View& x, int order);

}  // namespace weft::kernels
