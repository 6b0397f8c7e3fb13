// SPDX-License-Identifier: Apache-2.0
#include "nn/upsample.h"

#include "core/autograd.h"

namespace weft::nn {

Upsample::Upsample(UpsampleOptions upsampling) : options(upsampling) {
  WEFT_CHECK(options.size || (options.scale.h > 0 && options.scale.w > 0), "Upsample: expected positive scales, got ",
             options.scale.h, " and ", options.scale.w);
}

Tensor Upsample::forward(const Tensor& x) const {
  WEFT_CHECK(x.dim() == 4, "Upsample: expected images [N, H, W, C], got ", x);
  const Shape from{x.size(1), x.size(2)};
  if (!last_ || last_->from != from || last_->dtype != x.dtype() || last_->device != x.device()) {
    const NoGrad no_grad;
    const auto scaled = [](int64_t side, double scale) {
      return static_cast<int64_t>(static_cast<double>(side) * scale);
    };
    const Size2d to = options.size.value_or(Size2d{scaled(from[0], options.scale.h), scaled(from[1], options.scale.w)});
    Resize2dOptions resize{.interpolation = options.interpolation, .align_corners = options.align_corners};
    if (!options.size) resize.scale = options.scale;
    last_ = {from, x.dtype(), x.device(), resize2d_weights({from[0], from[1]}, to, resize, x.dtype(), x.device())};
  }
  return resize2d(x, last_->matrices);
}

}  // namespace weft::nn
