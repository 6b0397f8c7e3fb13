// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "core/ops/layers/conv2d.h"
#include "core/tensor.h"

namespace weft {

enum class Conv2dPart { x, w, y };

/// One of conv2d's input x, weight w and result y from the two others: y itself, or the gradient of x or w, where y is
/// the gradient of the result. Each is linear in both, and their gradients are of the same kind: so there are
/// derivatives of any order. `tensors`: x, w, y, as conv2d's kernels take them; that of `part` is not looked at, and
/// has these sizes.
Tensor conv2d_part(const char* op, Conv2dPart part, const std::array<Tensor, 3>& tensors, const Shape& sizes,
                   const Conv2dOptions& options);

}  // namespace weft
