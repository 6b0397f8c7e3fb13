// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reciprocal.h"

#include "core/ops/unary.h"

namespace weft {

Tensor reciprocal(const Tensor& x) { return unary("reciprocal", kernels::Unary::reciprocal, x); }

}  // namespace weft
