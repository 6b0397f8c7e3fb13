// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The targets of images mixed by image_mix(), as probabilities for cross_entropy(): f32 [N, classes] with `own` at
/// the image's own label and 1 - own at that of the image before it (of the first: the last), their sum where the
/// two are one. labels i64 [N]; no gradient. Errors: labels of another kind, classes below 1, own outside [0, 1]; a
/// label outside 0 … classes - 1, which is looked at where that costs no synchronisation: on the CPU. Elsewhere its
/// rows are NaN, and so is their loss.
Tensor mixed_targets(const Tensor& labels, int64_t classes, double own);

}  // namespace weft
