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

/// Pixels top … bottom - 1 by left … right - 1 of an image.
struct ImageBox {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

/// Every image of a batch mixed with its predecessor (the first with the last) inside a box: there y[n] = own x[n]
/// + (1 - own) x[n - 1], outside y[n] = x[n]. mixup is the box of the whole image, CutMix is own = 0, where pixels
/// are copied. x floating [N, H, W, C]; y has its dtype and device. All devices give the same bits. No gradient.
/// Errors: x of another kind, a box that reaches outside, own outside [0, 1].
Tensor image_mix(const Tensor& x, const ImageBox& box, double own);

/// The targets of images mixed by image_mix(), as probabilities for cross_entropy(): f32 [N, classes]. `own` is at the
/// image's own label, 1 - own at its predecessor's (the first's is the last); equal labels add up.
/// labels i64 [N]; no gradient. Errors: labels of another kind, classes below 1, own outside [0, 1]; a
/// label outside 0 … classes - 1, which is looked at where that costs no synchronisation: on the CPU. Elsewhere its
/// rows are NaN, and so is their loss.
Tensor mixed_targets(const Tensor& labels, int64_t classes, double own);

// Images are [N, H, W, C] (docs/nhwc.md). A tensor does not say so, and where the sizes fit by chance, [N, C, H, W]
// computes something else without an error. WEFT_CHECK=1 in the environment makes the ops below look at the sizes.

/// Switches the checks on or off, instead of the environment.
void check_image_layouts(bool on);

/// Errors, while the checks are on: x looks like [N, C, H, W]. Its last two sizes alone are equal, or the second and
/// the last alone; or x has 1 or 3 rows and at least 32 columns and channels. Equal sizes in all three, which tell
/// nothing, are noted once on stderr.
void check_image_layout(const char* op, const Tensor& x);

/// Errors, while the checks are on: dimension 1 of square images with another number of channels, which is their rows.
void check_concat_layout(const Tensor& x, int dim);

}  // namespace weft
