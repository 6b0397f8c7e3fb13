// SPDX-License-Identifier: Apache-2.0
#include "core/ops/clamp.h"

#include "core/ops/unary.h"

namespace weft {

Tensor clamp(const Tensor& x, double low, double high) {
  WEFT_CHECK(low <= high, "clamp: expected low <= high, got ", low, " and ", high);
  return unary("clamp", kernels::Unary::clamp, x, {low, high});
}

}  // namespace weft
