// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The tensors as slices of a new dimension `dim`. Errors: none given, sizes differ.
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim = 0);

}  // namespace weft
