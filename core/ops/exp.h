// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// y = e^x, element by element. Errors: x is not floating.
Tensor exp(const Tensor& x);

}  // namespace weft
