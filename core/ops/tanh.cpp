// SPDX-License-Identifier: Apache-2.0
#include "core/ops/tanh.h"

#include "core/ops/unary.h"

namespace weft {

Tensor tanh(const Tensor& x) { return unary("tanh", kernels::Unary::tanh, x); }

}  // namespace weft
