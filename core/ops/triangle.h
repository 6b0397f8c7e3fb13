// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// x [..., R, C] with zeros above its diagonal number `diagonal` (0: the main one, positive: to the right of it).
Tensor tril(const Tensor& x, int64_t diagonal = 0);
/// The same with zeros below it.
Tensor triu(const Tensor& x, int64_t diagonal = 0);

}  // namespace weft
