// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How a loss per row or element becomes the result.
enum class Reduction { mean, sum, none };

/// Each loss, their sum, or their mean.
Tensor reduced(const Tensor& losses, Reduction reduction);

}  // namespace weft
