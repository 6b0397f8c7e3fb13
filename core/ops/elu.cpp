// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elu.h"

#include "core/ops/unary.h"

namespace weft {

Tensor elu(const Tensor& x, double alpha) { return unary("elu", kernels::Unary::elu, x, {alpha, 0}); }

}  // namespace weft
