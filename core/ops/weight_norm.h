// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// g v / |v|, the norm over all dimensions but the first: v [O, ...], g [O, 1, …] (Salimans and Kingma 2016). Errors:
/// sizes that do not fit.
Tensor weight_norm(const Tensor& v, const Tensor& g);

}  // namespace weft
