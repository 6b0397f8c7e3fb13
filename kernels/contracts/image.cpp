// SPDX-License-Identifier: Apache-2.0
#include "kernels/contracts/image.h"

namespace weft::kernels {

void check_image_mix(const View& y, const View& x, const ImageMixArguments& a) {
  WEFT_CHECK(x.rank == 4 && y.same_sizes(x) && y.dtype == x.dtype && x.is_contiguous() && y.is_contiguous(),
             "image_mix: expected contiguous x and y [N, H, W, C] of one dtype, got x ", x, ", y ", y);
  WEFT_CHECK(0 <= a.top && a.top <= a.bottom && a.bottom <= x.sizes[1] && 0 <= a.left && a.left <= a.right &&
                 a.right <= x.sizes[2],
             "image_mix: expected a box inside of ", x, ", got rows ", a.top, " to ", a.bottom, ", columns ", a.left,
             " to ", a.right);
}

}  // namespace weft::kernels
