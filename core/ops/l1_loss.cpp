// SPDX-License-Identifier: Apache-2.0
#include "core/ops/l1_loss.h"

#include "core/autocast.h"
#include "core/ops/affine.h"
#include "core/ops/clamp.h"
#include "core/ops/mul.h"
#include "core/ops/sub.h"
#include "core/ops/unary.h"

namespace weft {
namespace {

Tensor distance(const char* op, const Tensor& x, const Tensor& y) {
  WEFT_CHECK(x.defined() && y.defined() && x.sizes() == y.sizes(), op, ": expected two tensors of one size, got ", x,
             " and ", y);
  return abs(sub(autocast_full(x), autocast_full(y)));
}

}  // namespace

Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  return reduced(distance("l1_loss", x, y), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta, Reduction reduction) {
  WEFT_CHECK(beta > 0, "smooth_l1_loss: expected a positive beta, got ", beta);
  const Tensor d = distance("smooth_l1_loss", x, y), near = clamp(d, 0, beta);
  return reduced(mul(near, affine(sub(d, affine(near, 0.5, 0)), 1 / beta, 0)), reduction);
}

}  // namespace weft
