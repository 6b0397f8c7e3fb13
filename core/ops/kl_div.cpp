// SPDX-License-Identifier: Apache-2.0
#include "core/ops/kl_div.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/compare.h"
#include "core/ops/mul.h"
#include "core/ops/sub.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "core/trace.h"

namespace weft {

Tensor kl_div(const Tensor& log_probs, const Tensor& target, Reduction reduction) {
  const OpScope scope("kl_div");
  WEFT_CHECK(log_probs.defined() && log_probs.is_floating() && target.defined() && target.is_floating() &&
                 log_probs.sizes() == target.sizes(),
             "kl_div: expected floating log probabilities and probabilities of one size, got ", log_probs, " and ",
             target);
  const Tensor x = autocast_full(log_probs);
  Tensor t, negative_entropy;
  {
    const NoGrad no_grad;
    t = target.to(x.dtype());
    negative_entropy = mul(t, log(where(gt(t, 0.0), t, 1.0)));
  }
  return reduced(sub(negative_entropy, mul(t, x)), reduction);
}

}  // namespace weft
