// SPDX-License-Identifier: Apache-2.0
#include "core/ops/losses.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  return reduction == Reduction::none ? losses : reduction == Reduction::sum ? sum(losses) : mean(losses);
}

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  WEFT_CHECK(x.defined() && y.defined() && x.sizes() == y.sizes(), "mse_loss: expected two tensors of one size, got ",
             x, " and ", y);
  return reduced(square(sub(autocast_full(x), autocast_full(y))), reduction);
}

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
