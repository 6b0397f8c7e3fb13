// SPDX-License-Identifier: Apache-2.0
#include "core/ops/mse_loss.h"

#include "core/autocast.h"
#include "core/ops/sub.h"
#include "core/ops/unary.h"

namespace weft {

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  WEFT_CHECK(x.defined() && y.defined() && x.sizes() == y.sizes(), "mse_loss: expected two tensors of one size, got ",
             x, " and ", y);
  return reduced(square(sub(autocast_full(x), autocast_full(y))), reduction);
}

}  // namespace weft
