// SPDX-License-Identifier: Apache-2.0
#include "core/ops/sigmoid.h"

#include "core/ops/unary.h"

namespace weft {

Tensor sigmoid(const Tensor& x) { return unary("sigmoid", kernels::Unary::sigmoid, x); }

}  // namespace weft
