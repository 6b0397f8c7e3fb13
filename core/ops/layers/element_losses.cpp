// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/element_losses.h"

#include <cmath>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"

namespace weft {

namespace {

void check_targets(const char* op, const Tensor& x, const Tensor& y) {
  WEFT_CHECK(x.defined() && y.defined() && x.is_floating() && x.sizes() == y.sizes(), op,
             ": expected a floating tensor and targets of its sizes, got ", x, " and ", y);
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& given, const Tensor& target, Reduction reduction) {
  const OpScope scope("binary_cross_entropy");
  check_targets("binary_cross_entropy", given, target);
  const Tensor p = autocast_full(given), t = target.to(p.dtype());
  if (size_of(p.dtype()) == 2)  // f16 does not hold the slope's limit
    return binary_cross_entropy(p.to(DType::f32), t.to(DType::f32), reduction).to(p.dtype());
  WEFT_CHECK(p.device().kind != DeviceKind::cpu || !any(logical_or(lt(p.detach(), 0), gt(p.detach(), 1))),
             "binary_cross_entropy: expected probabilities from 0 to 1; bce_with_logits takes logits");
  const auto least = [](const Tensor& share) {
    return maximum(log(share), Tensor::full({}, -100, share.dtype(), share.device()));
  };
  const bool dp = wants_gradient(p), dt = wants_gradient(t);
  Tensor y;
  {
    const NoGrad no_grad;
    y = neg(add(mul(t, least(p)), mul(1 - t, least(1 - p))));
  }
  if (!dp && !dt) return reduced(y, reduction);
  // The logarithm's slope is limited, too: its product with 0 is no NaN where p is 0 or 1.
  return reduced(differentiable(y, "binary_cross_entropy", {p, t},
                                [dp, dt, least, p = Saved(p), t = Saved(t)](const Tensor& dy) {
                                  const Tensor share = p;
                                  Grads grads(2);
                                  if (dp)
                                    grads[0] =
                                        mul(dy, div(sub(share, t), clamp(mul(share, 1 - share), 1e-12, INFINITY)));
                                  if (dt) grads[1] = mul(dy, sub(least(1 - share), least(share)));
                                  return grads;
                                }),
                 reduction);
}

Tensor poisson_nll_loss(const Tensor& given, const Tensor& target, const PoissonNllOptions& options) {
  const OpScope scope("poisson_nll_loss");
  check_targets("poisson_nll_loss", given, target);
  const Tensor x = autocast_full(given), t = target.to(x.dtype());
  return reduced(options.log_input ? sub(exp(x), mul(t, x)) : sub(x, mul(t, log(affine(x, 1, options.eps)))),
                 options.reduction);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin, Reduction reduction) {
  const OpScope scope("margin_ranking_loss");
  check_targets("margin_ranking_loss", a, b);
  return reduced(relu(affine(mul(y.to(a.dtype()), sub(a, b)), -1, margin)), reduction);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin, Reduction reduction) {
  const OpScope scope("hinge_embedding_loss");
  check_targets("hinge_embedding_loss", x, y);
  return reduced(where(eq(y, 1), x, relu(affine(x, -1, margin))), reduction);
}

Tensor multi_margin_loss(const Tensor& given, const Tensor& t, int p, double margin, Reduction reduction) {
  const OpScope scope("multi_margin_loss");
  WEFT_CHECK(given.defined() && t.defined() && given.is_floating() && given.dim() == 2 && t.dtype() == DType::i64 &&
                 t.dim() == 1 && t.size(0) == given.size(0),
             "multi_margin_loss: expected a floating tensor [N, C] and classes i64[N], got ", given, " and ", t);
  WEFT_CHECK(p == 1 || p == 2, "multi_margin_loss: expected p of 1 or 2, got ", p);
  const Tensor x = autocast_full(given), places = t.unsqueeze(1);
  const Tensor beyond = relu(affine(sub(x, gather(x, 1, places)), 1, margin));
  const Tensor others = ne(Tensor::arange(x.size(1), DType::i64, x.device()), places);
  const Tensor terms = where(others, p == 1 ? beyond : square(beyond), 0);
  return reduced(mean(terms, {1}), reduction);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  const OpScope scope("soft_margin_loss");
  check_targets("soft_margin_loss", x, y);
  return reduced(softplus(neg(mul(y.to(x.dtype()), x))), reduction);
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double eps) {
  const OpScope scope("pairwise_distance");
  WEFT_CHECK(a.defined() && b.defined() && a.is_floating() && b.is_floating(),
             "pairwise_distance: expected two floating tensors, got ", a, " and ", b);
  return norm(affine(sub(a, b), 1, eps), {-1});
}

}  // namespace weft
