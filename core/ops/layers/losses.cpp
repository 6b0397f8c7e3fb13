// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/losses.h"

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/gather.h"
#include "core/ops/layers/linear.h"
#include "core/ops/layers/softmax.h"
#include "core/ops/multiply.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"
#include "core/trace.h"
#include "kernels/contracts/cross_entropy.h"
#include "kernels/runtime/variants.h"
#include "kernels/runtime/wrong_index.h"

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
  // log(1 + e^x) - t x, which is log(1 + e^-x) + (1 - t) x: the one in which a small loss is no difference of large
  // numbers; and (p - 1) t log(1 + e^-x) for a positive weight p.
  const Tensor positive = gt(x, 0.0);
  Tensor loss = add(softplus(where(positive, neg(x), x)), mul(sub(positive.to(x.dtype()), t), x));
  if (options.positive_weight.defined())
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

namespace {

void check_sizes(const Tensor& logits, const Tensor& target) {
  WEFT_CHECK(logits.defined() && logits.is_floating() && logits.dim() >= 1,
             "cross_entropy: expected floating logits [..., classes], got ", logits);
  WEFT_CHECK(target.defined() && target.device() == logits.device(), "cross_entropy: expected a target on ",
             logits.device(), ", got ", target);
  if (target.is_floating()) {
    WEFT_CHECK(target.sizes() == logits.sizes(), "cross_entropy: expected probabilities of the logits' sizes ",
               logits.sizes(), ", got ", target);
    return;
  }
  Shape rows;
  for (int d = 0; d + 1 < logits.dim(); ++d) rows.push_back(logits.size(d));
  WEFT_CHECK(target.sizes() == rows && target.dtype() != DType::boolean,
             "cross_entropy: expected one class per row, i64", rows, ", for logits ", logits, ", got ", target);
}

/// Labels are read on the host only where that costs no synchronisation; elsewhere the kernel reads them.
void check_classes(const char* op, const Tensor& target, int64_t classes, DType dtype, int64_t ignore_index) {
  if (target.device().kind != DeviceKind::cpu) return;
  const int64_t* labels = target.data<int64_t>();
  for (int64_t row = 0; row < target.numel(); ++row)
    if ((labels[row] < 0 || labels[row] >= classes) && labels[row] != ignore_index)
      throw Error(kernels::text_of({.text = kernels::WrongIndex::Text::class_of_logits,
                                    .op = op,
                                    .dtype = dtype,
                                    .value = labels[row],
                                    .at = row,
                                    .limit = classes,
                                    .rows = target.numel()},
                                   target.device()));
}

/// With a weight per class. x [N, C], t classes [N] or probabilities [N, C] of x's dtype; the losses [N], and [N] what
/// the mean divides by.
std::pair<Tensor, Tensor> weighted(const Tensor& x, const Tensor& t, const Tensor& weight,
                                   const CrossEntropyOptions& options) {
  const int64_t C = x.size(1);
  WEFT_CHECK(weight.is_floating() && weight.sizes() == Shape{C} && weight.device() == x.device(),
             "cross_entropy: expected a weight per class, [", C, "] on ", x.device(), ", got ", weight);
  const Tensor wide = x.dtype() == DType::f64 ? x : x.to(DType::f32);
  const Tensor w = weight.to(wide.dtype());
  const Tensor losses = mul(neg(log_softmax(wide)), w);  // per class
  const double kept = 1 - options.label_smoothing, spread = options.label_smoothing / static_cast<double>(C);
  if (t.is_floating()) {
    const Tensor target = affine(t.to(wide.dtype()), kept, spread);
    return {sum(mul(losses, target), {1}), Tensor::ones({x.size(0)}, wide.dtype(), x.device())};
  }
  const Tensor counts = ne(t, static_cast<double>(options.ignore_index));
  const Tensor row = where(counts, t, 0).unsqueeze(1);
  Tensor loss = affine(gather(losses, 1, row).squeeze(1), kept, 0);
  if (spread != 0) loss = add(loss, affine(sum(losses, {1}), spread, 0));
  const Tensor of_rows = index_select(w, 0, row.flatten());
  return {where(counts, loss, 0.0), where(counts, of_rows, 0.0)};
}

/// [N, C] with dense rows: x where it has them (and their distance wastes little), else a copy.
Tensor with_rows(const Tensor& x, bool without_gaps) {
  const bool fits = kernels::has_rows(x) && kernels::row_pitch(x) < 2 * x.size(1) && !without_gaps;
  return fits ? x : x.contiguous();
}

Tensor empty_with_pitch_of(const Tensor& x) {
  return Tensor::empty({x.size(0), kernels::row_pitch(x)}, x.dtype(), x.device()).slice(1, 0, x.size(1));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  const OpScope scope("cross_entropy");
  check_sizes(logits, target);
  WEFT_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1,
             "cross_entropy: expected label_smoothing in [0, 1], got ", options.label_smoothing);
  const int64_t C = logits.size(-1);
  WEFT_CHECK(C > 0, "cross_entropy: expected at least one class, got ", logits);
  const int64_t N = logits.numel() / C;
  // The kernel sums in f32 whatever the dtype; only probabilities and weights would lose digits in 16 bits.
  const bool in_full =
      target.is_floating() || options.weight.defined() || kernels::takes(kernels::Variant::dense_logits);
  const Tensor x = with_rows((in_full ? autocast_full(logits) : logits).reshape({N, C}), in_full);
  Tensor t;
  {
    const NoGrad no_grad;
    t = target.is_floating() ? target.to(x.dtype()).reshape({N, C}).contiguous()
                             : target.to(DType::i64).reshape({N}).contiguous();
  }
  if (!t.is_floating()) check_classes("cross_entropy", t, C, x.dtype(), options.ignore_index);

  if (options.weight.defined()) {
    const auto [losses, divisors] = weighted(x, t, options.weight, options);
    Shape rows;
    for (int d = 0; d + 1 < logits.dim(); ++d) rows.push_back(logits.size(d));
    if (options.reduction == Reduction::none) return losses.reshape(rows);
    return options.reduction == Reduction::sum ? sum(losses) : div(sum(losses), sum(divisors));
  }

  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor pair = Tensor::empty({2, N}, dtype, x.device()), loss = pair.select(0, 0), weight = pair.select(0, 1);
  const Tensor lse = Tensor::empty({2, N}, dtype, x.device());
  const kernels::CrossEntropyArguments arguments{options.label_smoothing, options.ignore_index};
  kernels::cross_entropy_forward(x.queue(), loss, lse, weight, x, t, arguments);

  Tensor y = loss, scale;  // scale: what dy is divided by
  {
    const NoGrad no_grad;
    if (options.reduction == Reduction::sum) y = sum(loss);
    if (options.reduction == Reduction::mean) {
      const Tensor sums = sum(pair, {1});
      scale = sums.select(0, 1);
      y = div(sums.select(0, 0), scale);
    }
    if (options.reduction == Reduction::none && logits.dim() != 2) {
      Shape rows;
      for (int d = 0; d + 1 < logits.dim(); ++d) rows.push_back(logits.size(d));
      y = y.reshape(rows);
    }
  }
  if (!wants_gradient(x)) return y;
  return differentiable(
      y, "cross_entropy", {x, t},
      [x = Saved(x), t = Saved(t), lse = Saved(lse), scale, N, arguments, options](const Tensor& dy,
                                                                                   BackwardContext& context) {
        const Tensor dloss = scale.defined() ? div(dy, scale) : dy;
        const Tensor rows = dloss.dim() == 0 ? dloss.expand({N}) : dloss.reshape({N});
        const Tensor kept = x;
        if (grad_enabled()) {
          const Tensor wanted = t.get().detach(), ones = Tensor::ones({kept.size(1)}, rows.dtype(), rows.device());
          return gradients_by_ops(
              [&](const std::vector<Tensor>& in) {
                return weighted(in[0].to(rows.dtype()), wanted, ones, options).first;
              },
              {kept, Tensor()}, rows, context);
        }
        const bool in_place = context.is_last() && kept.storage()->owners() == 2;  // `x` and this view of it
        const Tensor dx = in_place ? kept : empty_with_pitch_of(kept);
        kernels::cross_entropy_backward(dx.queue(), dx, rows, kept, lse, t, arguments);
        return Grads{dx, {}};
      });
}

Tensor linear_cross_entropy(const Tensor& input, const Tensor& weight, const Tensor& target,
                            const LinearCrossEntropyOptions& options) {
  constexpr const char* kOp = "linear_cross_entropy";
  constexpr int64_t kChunkBytes = int64_t{256} << 20, kTileRows = 128;
  const OpScope scope(kOp);
  WEFT_CHECK(input.defined() && input.dim() >= 1 && weight.defined() && weight.dim() == 2 && weight.size(0) > 0 &&
                 input.size(-1) == weight.size(1) && weight.device() == input.device(),
             kOp, ": expected an input [..., features] and a weight [classes, features] on one device, got ", input,
             " and ", weight);
  const Tensor x = autocast_low(input), w = autocast_low(weight);
  WEFT_CHECK(x.is_floating() && x.dtype() == w.dtype(), kOp, ": expected one floating dtype, got ", input, " and ",
             weight);
  Shape sizes;
  for (int d = 0; d + 1 < x.dim(); ++d) sizes.push_back(x.size(d));
  WEFT_CHECK(target.defined() && !target.is_floating() && target.dtype() != DType::boolean &&
                 target.device() == x.device() && target.sizes() == sizes,
             kOp, ": expected one class per row, i64", sizes, " on ", x.device(), ", got ", target);
  WEFT_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1, kOp,
             ": expected label_smoothing in [0, 1], got ", options.label_smoothing);
  WEFT_CHECK(options.rows >= 0, kOp, ": expected at least 0 rows at a time, got ", options.rows);
  WEFT_CHECK(options.reduction != Reduction::none, kOp,
             ": expected the mean or the sum, got Reduction::none. Use cross_entropy(linear(x, weight), target)");
  const int64_t C = w.size(0), in = w.size(1), N = target.numel();
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const int64_t fit = kChunkBytes / (C * static_cast<int64_t>(size_of(x.dtype()))) / kTileRows * kTileRows;
  const int64_t step = options.rows > 0 ? options.rows : std::max(fit, kTileRows);
  const bool dx = wants_gradient(x), dw = wants_gradient(w);
  Tensor y, scale, gx, gw;  // gx, gw: the gradients of the sum of the losses
  {
    const NoGrad no_grad;
    const Tensor rows = x.reshape({N, in}), t = target.to(DType::i64).reshape({N}).contiguous();
    check_classes(kOp, t, C, x.dtype(), options.ignore_index);
    const Tensor pair = Tensor::zeros({2, N}, wide, x.device()), one = Tensor::ones({}, wide, x.device());
    if (dx) gx = Tensor::empty({N, in}, wide, x.device());
    if (dw) gw = N > 0 ? Tensor::empty({C, in}, wide, x.device()) : Tensor::zeros({C, in}, wide, x.device());
    const kernels::CrossEntropyArguments arguments{options.label_smoothing, options.ignore_index};
    for (int64_t begin = 0; begin < N; begin += step) {
      const int64_t count = std::min(step, N - begin);
      const Tensor part = rows.slice(0, begin, count), classes = t.slice(0, begin, count);
      const Tensor logits = multiply(part, w.transpose(0, 1), {}, x.dtype(), true);
      const Tensor lse = Tensor::empty({2, count}, wide, x.device());
      kernels::cross_entropy_forward(x.queue(), pair.select(0, 0).slice(0, begin, count), lse,
                                     pair.select(0, 1).slice(0, begin, count), logits, classes, arguments);
      if (!dx && !dw) continue;
      kernels::cross_entropy_backward(x.queue(), logits, one.expand({count}), logits, lse, classes, arguments);
      if (dx) multiply_into(gx.slice(0, begin, count), logits, w, {});
      if (dw)
        multiply_into(gw, logits.transpose(0, 1), part, {},
                      begin == 0 ? kernels::Grad::overwrite : kernels::Grad::accumulate);
    }
    const Tensor sums = sum(pair, {1});
    y = sums.select(0, 0).clone();
    if (options.reduction == Reduction::mean) {
      scale = sums.select(0, 1);
      y = div(y, scale);
    }
  }
  if (!dx && !dw) return y;
  return differentiable(y, kOp, {x, w},
                        [gx, gw, scale, x = Saved(x), w = Saved(w), target, options, x_dtype = input.dtype(),
                         w_dtype = weight.dtype()](const Tensor& dy, BackwardContext& context) {
                          if (grad_enabled())
                            return gradients_by_ops(
                                [&](const std::vector<Tensor>& given) {
                                  return cross_entropy(
                                      linear(given[0], given[1]), target,
                                      {options.label_smoothing, options.ignore_index, options.reduction});
                                },
                                {x, w}, dy, context);
                          const Tensor by = scale.defined() ? div(dy, scale) : dy;
                          Grads grads(2);
                          if (gx.defined()) grads[0] = mul(gx, by).to(x_dtype).reshape(x.sizes());
                          if (gw.defined()) grads[1] = mul(gw, by).to(w_dtype);
                          return grads;
                        });
}

}  // namespace weft
