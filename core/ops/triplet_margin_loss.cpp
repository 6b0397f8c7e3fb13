// SPDX-License-Identifier: Apache-2.0
#include "core/ops/triplet_margin_loss.h"

#include "core/autocast.h"
#include "core/ops/add.h"
#include "core/ops/maximum.h"
#include "core/ops/norm.h"
#include "core/ops/sub.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  const OpScope scope("triplet_margin_loss");
  WEFT_CHECK(anchor.defined() && positive.defined() && negative.defined() && anchor.is_floating() &&
                 anchor.dim() >= 1 && anchor.sizes() == positive.sizes() && anchor.sizes() == negative.sizes(),
             "triplet_margin_loss: expected three floating tensors of one size, got ", anchor, ", ", positive, ", ",
             negative);
  const Tensor a = autocast_full(anchor), p = autocast_full(positive), n = autocast_full(negative);
  const auto distance = [&](const Tensor& x, const Tensor& y) { return norm(add(sub(x, y), options.eps), {-1}); };
  Tensor far = distance(a, n);
  if (options.swap) far = minimum(far, distance(p, n));
  return reduced(relu(add(sub(distance(a, p), far), options.margin)), options.reduction);
}

}  // namespace weft
