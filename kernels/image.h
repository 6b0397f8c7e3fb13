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

}  // namespace weft::kernels
