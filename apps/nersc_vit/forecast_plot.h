// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"
#include "train/canvas.h"

namespace weft::nersc_vit {

/// One channel of the first sample of each [N, rows, columns, channels], side by side: blue below 0, red above, full
/// colour at three standard deviations.
train::Canvas draw_channel(const std::vector<Tensor>& fields, int64_t channel);

}  // namespace weft::nersc_vit
