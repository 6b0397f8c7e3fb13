// SPDX-License-Identifier: Apache-2.0
#include "core/ops/pool2d.h"

namespace weft {

Pooling pooling(const char* op, const Tensor& x, const Pool2dOptions& options) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() == 4, op, ": expected a floating input [N, H, W, C], got ", x);
  const Size2d kernel = options.kernel, padding = options.padding;
  const Size2d stride{options.stride.h == 0 ? kernel.h : options.stride.h,
                      options.stride.w == 0 ? kernel.w : options.stride.w};
  WEFT_CHECK(kernel.h >= 1 && kernel.w >= 1 && stride.h >= 1 && stride.w >= 1, op,
             ": expected kernel and stride of at least 1, got kernel ", kernel.h, "x", kernel.w, ", stride ", stride.h,
             "x", stride.w);
  WEFT_CHECK(padding.h >= 0 && padding.w >= 0 && 2 * padding.h <= kernel.h && 2 * padding.w <= kernel.w, op,
             ": expected padding of at most half of the kernel ", kernel.h, "x", kernel.w, ", got ", padding.h, "x",
             padding.w);
  const int64_t H = x.size(1) + 2 * padding.h - kernel.h, W = x.size(2) + 2 * padding.w - kernel.w;
  WEFT_CHECK(H >= 0 && W >= 0, op, ": the kernel ", kernel.h, "x", kernel.w, " is larger than the padded input ", x);
  return {{kernel, stride, padding, options.count_include_pad},
          {x.size(0), H / stride.h + 1, W / stride.w + 1, x.size(3)}};
}

}  // namespace weft
