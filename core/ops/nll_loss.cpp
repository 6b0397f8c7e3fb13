// SPDX-License-Identifier: Apache-2.0
#include "core/ops/nll_loss.h"

#include "core/autocast.h"
#include "core/ops/compare.h"
#include "core/ops/div.h"
#include "core/ops/gather.h"
#include "core/ops/sum.h"
#include "core/ops/unary.h"
#include "core/ops/where.h"
#include "core/trace.h"

namespace weft {

Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NllLossOptions& options) {
  const OpScope scope("nll_loss");
  WEFT_CHECK(log_probs.defined() && log_probs.is_floating() && log_probs.dim() == 2,
             "nll_loss: expected floating log probabilities [rows, classes], got ", log_probs);
  WEFT_CHECK(target.defined() && !target.is_floating() && target.dim() == 1 && target.size(0) == log_probs.size(0),
             "nll_loss: expected one class per row, i64[", log_probs.size(0), "], got ", target);
  const Tensor x = autocast_full(log_probs), t = target.to(DType::i64);
  const Tensor counts = ne(t, static_cast<double>(options.ignore_index));
  const Tensor first = Tensor::zeros({}, DType::i64, t.device()), zero = Tensor::zeros({}, x.dtype(), x.device());
  const Tensor picked = gather(x, 1, where(counts, t, first).unsqueeze(1)).squeeze(1);
  const Tensor loss = where(counts, -picked, zero);
  if (options.reduction == Reduction::none) return loss;
  if (options.reduction == Reduction::sum) return sum(loss);
  return div(sum(loss), sum(counts.to(x.dtype())));
}

}  // namespace weft
