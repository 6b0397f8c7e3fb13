// SPDX-License-Identifier: Apache-2.0
#include "core/ops/image_mix.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/image_mix.h"

namespace weft {

Tensor image_mix(const Tensor& x, const ImageBox& box, double own) {
  const OpScope scope("image_mix");
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() == 4, "image_mix: expected floating images [N, H, W, C], got ",
             x);
  WEFT_CHECK(0 <= box.top && box.top <= box.bottom && box.bottom <= x.size(1) && 0 <= box.left &&
                 box.left <= box.right && box.right <= x.size(2),
             "image_mix: expected a box inside of ", x, ", got rows ", box.top, " to ", box.bottom, ", columns ",
             box.left, " to ", box.right);
  WEFT_CHECK(own >= 0 && own <= 1, "image_mix: expected a share of the image from 0 to 1, got ", own);
  const NoGrad no_grad;
  const Tensor y = Tensor::empty(x.sizes(), x.dtype(), x.device());
  kernels::image_mix(y.queue(), y, x.contiguous(), {box.top, box.bottom, box.left, box.right, own});
  return y;
}

}  // namespace weft
