// SPDX-License-Identifier: Apache-2.0
#include "core/ops/abs.h"

#include "core/ops/unary.h"

namespace weft {

Tensor abs(const Tensor& x) { return unary("abs", kernels::Unary::abs, x); }

}  // namespace weft
