// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rsqrt.h"

#include "core/ops/unary.h"

namespace weft {

Tensor rsqrt(const Tensor& x) { return unary("rsqrt", kernels::Unary::rsqrt, x); }

}  // namespace weft
