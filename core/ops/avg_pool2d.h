// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/pool2d.h"

namespace weft {

/// The mean of each window of x [N, H, W, C].
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});

}  // namespace weft
