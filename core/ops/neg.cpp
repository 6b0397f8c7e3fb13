// SPDX-License-Identifier: Apache-2.0
#include "core/ops/neg.h"

#include "core/ops/unary.h"

namespace weft {

Tensor neg(const Tensor& x) { return unary("neg", kernels::Unary::neg, x); }
Tensor operator-(const Tensor& x) { return neg(x); }

}  // namespace weft
