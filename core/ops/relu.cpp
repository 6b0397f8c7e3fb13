// SPDX-License-Identifier: Apache-2.0
#include "core/ops/relu.h"

#include "core/ops/unary.h"

namespace weft {

Tensor relu(const Tensor& x) { return unary("relu", kernels::Unary::relu, x); }

}  // namespace weft
