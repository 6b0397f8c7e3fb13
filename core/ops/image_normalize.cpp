// SPDX-License-Identifier: Apache-2.0
#include "core/ops/image_normalize.h"

#include "core/autograd.h"
#include "core/trace.h"
#include "kernels/image.h"

namespace weft {

Tensor image_normalize(const Tensor& x, const Tensor& place, const std::vector<float>& mean,
                       const std::vector<float>& std, int64_t h, int64_t w, DType dtype) {
  const OpScope scope("image_normalize");
  WEFT_CHECK(x.defined() && x.dtype() == DType::u8 && x.dim() == 4 && x.size(3) >= 1 && x.size(3) <= 4,
             "image_normalize: expected images u8[N, H, W, C], C from 1 to 4, got ", x);
  WEFT_CHECK(!place.defined() ||
                 (place.dtype() == DType::i32 && place.sizes() == Shape{x.size(0), 3} && place.device() == x.device()),
             "image_normalize: expected places i32[", x.size(0), ",3] on ", x.device(), ", got ", place);
  WEFT_CHECK(mean.size() == static_cast<size_t>(x.size(3)) && std.size() == mean.size(),
             "image_normalize: expected mean and std of ", x.size(3), " channels, got ", mean.size(), " and ",
             std.size());
  WEFT_CHECK(h >= 1 && w >= 1, "image_normalize: expected an output of at least 1x1, got ", h, "x", w);
  WEFT_CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f64,
             "image_normalize: expected f32, bf16 or f64, got ", dtype);
  kernels::ImageNormalizeArguments arguments;
  for (size_t c = 0; c < mean.size(); ++c) {
    WEFT_CHECK(std[c] > 0, "image_normalize: expected a positive std, got ", std[c], " for channel ", c);
    arguments.mean[c] = mean[c];
    arguments.std[c] = std[c];
  }
  const NoGrad no_grad;
  const Tensor y = Tensor::empty({x.size(0), h, w, x.size(3)}, dtype, x.device());
  const Tensor where = place.defined() ? place.contiguous() : Tensor();
  kernels::image_normalize(y.queue(), y, x.contiguous(), where, arguments);
  return y;
}

}  // namespace weft
