// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sqrt.h"

#include "core/ops/unary.h"

namespace weft {

Tensor sqrt(const Tensor& x) { return unary("sqrt", kernels::Unary::sqrt, x); }

}  // namespace weft
