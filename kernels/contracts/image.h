// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

struct ImageNormalizeArguments {
  float mean[4] = {0, 0, 0, 0};
  float std[4] = {1, 1, 1, 1};
};

/// From stored images to the model's input in one pass: crop, flip, scale to [0, 1], normalise.
/// x u8 [N, H, W, C], C <= 4; y f32, bf16 or f64 [N, P, Q, C]; crop i32 [N, 3] = {top, left, flip} or none (centre).
/// y[n, p, q, c] = (x[n, top + p, left + (flip ? Q - 1 - q : q), c] / 255 - mean[c]) / std[c]; a position outside x
/// counts as a black pixel (x = 0), so that top and left may be negative: that is pad-and-crop.
WEFT_KERNEL(image_normalize, const Queue& queue, const View& y, const View& x, const View& crop,
            ImageNormalizeArguments arguments);

/// A box of pixels, the same in every image, and its content.
struct ImageMixArguments {
  int64_t top = 0, bottom = 0, left = 0, right = 0;  ///< rows top … bottom - 1, columns left … right - 1
  double own = 0;  ///< weight of the image itself in the box; 0: the other image's pixels unchanged
};

/// Mixes every image of a batch with the previous image, the first with the last: mixup if the box is the whole image
/// (Zhang et al., ICLR 2018), CutMix if own = 0 (Yun et al., ICCV 2019). In the box, y[n, p, q, c] = fma(1 - own, x[n -
/// 1, p, q, c], own x[n, p, q, c]). Outside, y = x. x, y floating [N, H, W, C], contiguous, not the same
/// memory. own x is rounded to f32 (f64 for f64), followed by a fused multiply-add and a rounding to the dtype:
/// bit-identical on every device.
WEFT_KERNEL(image_mix, const Queue& queue, const View& y, const View& x, ImageMixArguments arguments);

/// Checks the contract's arguments.
void check_image_mix(const View& y, const View& x, const ImageMixArguments& arguments);

/// The targets of a batch of mixed images (image_mix): targets f32 [N, C], contiguous; labels i64 [N].
/// targets[n, c] = (c = labels[n] ? own : 0) + (c = labels[n - 1] ? 1 - own : 0), the first with the last.
/// A label outside [0, C) sets its rows to NaN; on a device it is recorded (wrong_index.h).
WEFT_KERNEL(mixed_targets, const Queue& queue, const View& targets, const View& labels, double own);

}  // namespace weft::kernels
