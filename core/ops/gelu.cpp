// SPDX-License-Identifier: Apache-2.0
#include "core/ops/gelu.h"

#include "core/ops/unary.h"

namespace weft {

Tensor gelu(const Tensor& x, Gelu approximate) {
  return unary("gelu", approximate == Gelu::erf ? kernels::Unary::gelu : kernels::Unary::gelu_tanh, x);
}

}  // namespace weft
