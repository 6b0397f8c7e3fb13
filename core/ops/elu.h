// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x where x > 0, else alpha (e^x - 1), element by element (Clevert et al. 2015).
Tensor elu(const Tensor& x, double alpha = 1);

}  // namespace weft
