// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sign.h"

#include "core/ops/unary.h"

namespace weft {

Tensor sign(const Tensor& x) { return unary("sign", kernels::Unary::sign, x); }

}  // namespace weft
