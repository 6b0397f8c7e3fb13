// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/pool2d.h"

namespace weft {

/// The maximum of each window of x [N, H, W, C]; the gradient goes to the first maximum of a window.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});

}  // namespace weft
