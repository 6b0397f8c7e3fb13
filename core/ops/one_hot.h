// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// [..., classes]: 1 at each label's class, else 0. labels are integers. Errors: on the CPU a label outside of
/// [0, classes); on other devices its row is 0.
Tensor one_hot(const Tensor& labels, int64_t classes, DType dtype = DType::f32);

}  // namespace weft
