// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// The tensors one after another along `dim`; other sizes equal; dtypes are promoted. Errors: none given, sizes differ.
Tensor concat(const std::vector<Tensor>& tensors, int64_t dim = 0);

}  // namespace weft
