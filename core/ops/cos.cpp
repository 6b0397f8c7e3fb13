// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cos.h"

#include "core/ops/unary.h"

namespace weft {

Tensor cos(const Tensor& x) { return unary("cos", kernels::Unary::cos, x); }

}  // namespace weft
