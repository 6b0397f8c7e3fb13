// SPDX-License-Identifier: Apache-2.0
#include "core/ops/bce_with_logits.h"

#include "core/autocast.h"
#include "core/ops/add.h"
#include "core/ops/mul.h"
#include "core/ops/reduction.h"
#include "core/ops/sub.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceWithLogitsOptions& options) {
  const OpScope scope("bce_with_logits");
  WEFT_CHECK(logits.defined() && logits.is_floating() && target.defined() && target.is_floating() &&
                 logits.sizes() == target.sizes(),
             "bce_with_logits: expected floating logits and targets of one size, got ", logits, " and ", target);
  const Tensor x = autocast_full(logits), t = target.to(x.dtype());
  // log(1 + e^x) - t x; and (p - 1) t log(1 + e^-x) for a positive weight p.
  Tensor loss = sub(softplus(x), mul(t, x));
  if (options.positive_weight)
    loss = add(loss, mul(mul(sub(options.positive_weight.to(x.dtype()), 1.0), t), softplus(neg(x))));
  return reduced(loss, options.reduction);
}

}  // namespace weft
