// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/size2d.h"
#include "core/tensor.h"
#include "kernels/pool2d.h"

namespace weft {

struct Pool2dOptions {
  Size2d kernel{2, 2};
  Size2d stride{0, 0};            ///< 0: the kernel's size
  Size2d padding{0, 0};           ///< at most half of the kernel
  bool count_include_pad = true;  ///< average pooling: padded zeros count in the divisor
};

/// What max_pool2d and avg_pool2d share: the kernel's arguments and the sizes of the result. Errors: not [N, H, W, C],
/// not floating, a window that does not fit.
struct Pooling {
  kernels::Pool2dArguments arguments;
  Shape sizes;
};
Pooling pooling(const char* op, const Tensor& x, const Pool2dOptions& options);

}  // namespace weft
