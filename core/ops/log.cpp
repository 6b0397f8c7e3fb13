// SPDX-License-Identifier: Apache-2.0
#include "core/ops/log.h"

#include "core/ops/unary.h"

namespace weft {

Tensor log(const Tensor& x) { return unary("log", kernels::Unary::log, x); }

}  // namespace weft
