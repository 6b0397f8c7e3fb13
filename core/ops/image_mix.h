// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Pixels top … bottom - 1 by left … right - 1 of an image.
struct ImageBox {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

/// Every image of a batch mixed with the one before it (the first with the last) inside a box: there y[n] = own x[n]
/// + (1 - own) x[n - 1], outside y[n] = x[n]. mixup is the box of the whole image, CutMix is own = 0, where pixels
/// are copied. x floating [N, H, W, C]; y has its dtype and device. The same bits on every device. No gradient. Errors:
/// x of another kind, a box that reaches outside, own outside [0, 1].
Tensor image_mix(const Tensor& x, const ImageBox& box, double own);

}  // namespace weft
