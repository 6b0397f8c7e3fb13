// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// Stored images to the model's input in one pass: crop, flip, scale to [0, 1], normalise. x u8 [N, H, W, C], C <= 4;
/// place i32 [N, 3] = {top, left, flip} per image (a position outside the image counts as black: pad-and-crop), or
/// undefined: the centre. y [N, h, w, C] = (x / 255 - mean[c]) / std[c] in `dtype` (f32, bf16, f64). No gradient.
/// Errors: sizes or dtypes that do not fit, a std of 0.
Tensor image_normalize(const Tensor& x, const Tensor& place, const std::vector<float>& mean,
                       const std::vector<float>& std, int64_t h, int64_t w, DType dtype = DType::f32);

}  // namespace weft
