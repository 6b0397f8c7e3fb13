// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = x > 0 ? x : slope x, element by element (Maas et al. 2013).
Tensor leaky_relu(const Tensor& x, double slope = 0.01);

}  // namespace weft
