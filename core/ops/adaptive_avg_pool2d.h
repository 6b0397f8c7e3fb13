// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/size2d.h"
#include "core/tensor.h"

namespace weft {

/// x [N, H, W, C] averaged down (or up) to `size`: y[p, q] is the mean over rows floor(p H / P) … ceil((p + 1) H / P) -
/// 1 and columns alike. {1, 1} is the global average.
Tensor adaptive_avg_pool2d(const Tensor& x, Size2d size = {1, 1});

}  // namespace weft
