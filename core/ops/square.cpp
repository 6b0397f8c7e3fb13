// SPDX-License-Identifier: Apache-2.0
#include "core/ops/square.h"

#include "core/ops/unary.h"

namespace weft {

Tensor square(const Tensor& x) { return unary("square", kernels::Unary::square, x); }

}  // namespace weft
