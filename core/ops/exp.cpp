// SPDX-License-Identifier: Apache-2.0
#include "core/ops/exp.h"

#include "core/ops/unary.h"

namespace weft {

Tensor exp(const Tensor& x) { return unary("exp", kernels::Unary::exp, x); }

}  // namespace weft
