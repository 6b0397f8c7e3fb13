// SPDX-License-Identifier: Apache-2.0
#include "core/ops/leaky_relu.h"

#include "core/ops/unary.h"

namespace weft {

Tensor leaky_relu(const Tensor& x, double slope) {
  return unary("leaky_relu", kernels::Unary::leaky_relu, x, {slope, 0});
}

}  // namespace weft
