// SPDX-License-Identifier: Apache-2.0
#include "core/ops/affine.h"

#include "core/ops/unary.h"
#include "core/promotion.h"

namespace weft {

Tensor affine(const Tensor& x, double scale, double shift) {
  WEFT_CHECK(x.defined(), "affine: expected a tensor, got none");
  return unary("affine", kernels::Unary::affine, x.to(promote_with_number(x.dtype())), {scale, shift});
}

}  // namespace weft
