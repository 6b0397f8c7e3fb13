// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/kernel.h"

namespace weft::kernels {

/// The targets of a batch of mixed images (image_mix.h): targets f32 [N, C], contiguous; labels i64 [N].
/// targets[n, c] = (c = labels[n] ? own : 0) + (c = labels[n - 1] ? 1 - own : 0), the first with the last.
/// A label outside [0, C) makes the rows that it belongs to NaN; on a device it is recorded (wrong_index.h).
WEFT_KERNEL(mixed_targets, const Queue& queue, const View& targets, const View& labels, double own);

}  // namespace weft::kernels
