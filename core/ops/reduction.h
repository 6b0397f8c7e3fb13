// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How a loss per row or element becomes the result.
enum class Reduction { mean, sum, none };

}  // namespace weft
