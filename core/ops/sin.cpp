// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sin.h"

#include "core/ops/unary.h"

namespace weft {

Tensor sin(const Tensor& x) { return unary("sin", kernels::Unary::sin, x); }

}  // namespace weft
