// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// A box of pixels, the same in every image, and its content.
struct ImageMixArguments {
  int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< rows top … bottom - 1, columns left … right - 1
  double own = 0;  ///< share of the image itself in the box; 0: the other image's pixels as they are
};

/// Every image of a batch mixed with the one before it, the first with the last: mixup where the box is the whole
/// image (Zhang et al., ICLR 2018), CutMix where own = 0 (Yun et al., ICCV 2019).
/// y[n, p, q, c] = fma(1 - own, x[n - 1, p, q, c], own x[n, p, q, c]) inside the box, x[n, p, q, c] outside.
/// x, y floating [N, H, W, C], contiguous, not the same memory. own x is rounded to f32 (f64 for f64), the rest is one
/// fused multiply-add and one rounding to the dtype: the same bits on every device.
WEFT_KERNEL(image_mix, const Queue& queue, const View& y, const View& x, ImageMixArguments arguments);

/// Checks the contract's arguments.
void check_image_mix(const View& y, const View& x, const ImageMixArguments& arguments);

}  // namespace weft::kernels
