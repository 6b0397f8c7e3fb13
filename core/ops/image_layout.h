// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

// Images are [N, H, W, C] (docs/nhwc.md). A tensor does not say so, and where the sizes fit by chance, [N, C, H, W]
// computes something else without an error. WEFT_CHECK=1 in the environment makes the ops below look at the sizes.

/// Switches the checks on or off, instead of the environment.
void check_image_layouts(bool on);

/// Errors, while the checks are on: x looks like [N, C, H, W], since its last two sizes are equal and the second is
/// not, the second and the last are equal and the third is not, or it has 1 or 3 rows and at least 32 columns and
/// channels. Equal sizes in all three, which tell nothing, are noted once on stderr.
void check_image_layout(const char* op, const Tensor& x);

/// Errors, while the checks are on: dimension 1 of square images with another number of channels, which is their rows.
void check_concat_layout(const Tensor& x, int dim);

}  // namespace weft
