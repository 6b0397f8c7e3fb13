// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/conv2d.h"
#include "core/ops/layers/conv3d.h"
#include "core/tensor.h"

namespace weft {

struct Pool2dOptions {
  Size2d kernel = 2;
  Size2d stride = 0;              ///< 0: the kernel's size
  Size2d padding = 0;             ///< at most half of the kernel
  bool count_include_pad = true;  ///< average pooling: padded zeros count in the divisor
  bool ceil_mode = false;         ///< a last window may begin in x or its padding on the left and reach beyond
};

/// The maximum of each window of x [N, H, W, C]; the gradient goes to the first maximum of a window.
/// Errors: not [N, H, W, C], not floating, a window that does not fit.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});

/// The mean of each window of x [N, H, W, C]. Errors: as max_pool2d.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});

/// x [N, H, W, C] averaged down (or up) to `size`: y[p, q] is the mean over rows floor(p H / P) … ceil((p + 1) H / P) -
/// 1 and columns likewise. 1 is the global average.
Tensor adaptive_avg_pool2d(const Tensor& x, Size2d size = 1);

struct Pool1dOptions {
  int64_t kernel = 2, stride = 0, padding = 0;  ///< as in Pool2dOptions
  bool count_include_pad = true, ceil_mode = false;
};
struct Pool3dOptions {
  Size3d kernel = 2, stride = 0, padding = 0;
  bool count_include_pad = true, ceil_mode = false;
};

// As above for sequences x [N, L, C] and volumes x [N, D, H, W, C], these in two passes: over H and W, then over D.
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {});
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {});
Tensor adaptive_avg_pool1d(const Tensor& x, Integer size = 1);
Tensor max_pool3d(const Tensor& x, const Pool3dOptions& options = {});
Tensor avg_pool3d(const Tensor& x, const Pool3dOptions& options = {});
Tensor adaptive_avg_pool3d(const Tensor& x, Size3d size = 1);

/// The maximum of each of adaptive_avg_pool2d()'s windows; the gradient goes to the first one. Errors: as there.
Tensor adaptive_max_pool2d(const Tensor& x, Size2d size = 1);
Tensor adaptive_max_pool1d(const Tensor& x, Integer size = 1);
Tensor adaptive_max_pool3d(const Tensor& x, Size3d size = 1);

}  // namespace weft
