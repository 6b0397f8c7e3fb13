// SPDX-License-Identifier: Apache-2.0
#include "core/ops/layers/losses.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/autocast.h"
#include "core/autograd.h"
#include "core/backward_context.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/concat.h"
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

Tensor huber_loss(const Tensor& x, const Tensor& y, double delta, Reduction reduction) {
  WEFT_CHECK(delta > 0, "huber_loss: expected a positive delta, got ", delta);
  const Tensor d = distance("huber_loss", x, y), near = clamp(d, 0, delta);
  return reduced(mul(near, sub(d, affine(near, 0.5, 0))), reduction);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, const GaussianNllOptions& options) {
  const OpScope scope("gaussian_nll_loss");
  WEFT_CHECK(x.defined() && target.defined() && var.defined() && x.is_floating() && target.is_floating() &&
                 var.is_floating() && x.sizes() == target.sizes() && var.dim() <= x.dim(),
             "gaussian_nll_loss: expected floating predictions, targets and variances of their sizes, got ", x, ", ",
             target, " and ", var);
  const bool each = var.dim() < x.dim();  // a variance for each row, as var [..., 1]
  const Tensor shaped = each ? var.unsqueeze(-1) : var;
  for (int d = 0; d < x.dim(); ++d)
    WEFT_CHECK(shaped.dim() == x.dim() && (shaped.size(d) == x.size(d) || (d == x.dim() - 1 && shaped.size(d) == 1)),
               "gaussian_nll_loss: expected variances of the sizes ", x.sizes(),
               ", with 1 as the last or without it, got ", var);
  WEFT_CHECK(var.device().kind != DeviceKind::cpu || !any(lt(var.detach(), 0)),
             "gaussian_nll_loss: expected variances of at least 0, got a negative one");
  const Tensor v = autocast_full(shaped);
  const Tensor least = where(lt(v.detach(), options.eps), options.eps, v);  // no gradient below eps
  const Tensor loss = add(log(least), div(square(sub(autocast_full(x), autocast_full(target))), least));
  return reduced(affine(loss, 0.5, options.full ? 0.5 * std::log(2 * std::numbers::pi) : 0), options.reduction);
}

namespace {

Tensor length_of(const char* op, const Tensor& x, Integer dim, double eps) {
  WEFT_CHECK(x.defined() && x.is_floating() && x.dim() >= 1, op, ": expected floating vectors, got ", x);
  const Tensor length = norm(x, {dim}, /*keep_dims=*/true);
  return where(lt(length.detach(), eps), eps, length);
}

}  // namespace

Tensor normalize(const Tensor& x, Integer dim, double eps) {
  const OpScope scope("normalize");
  return div(x, length_of("normalize", x, dim, eps));
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, Integer dim, double eps) {
  constexpr const char* kOp = "cosine_similarity";
  const OpScope scope(kOp);
  WEFT_CHECK(a.defined() && b.defined(), "cosine_similarity: expected two tensors, got ", a, " and ", b);
  const Shape sizes = broadcast_shapes(kOp, a.sizes(), b.sizes());
  const Tensor x = a.expand(sizes), y = b.expand(sizes);
  return sum(mul(div(x, length_of(kOp, x, dim, eps)), div(y, length_of(kOp, y, dim, eps))), {dim});
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin,
                             Reduction reduction) {
  const OpScope scope("cosine_embedding_loss");
  WEFT_CHECK(a.defined() && b.defined() && a.dim() == 2 && a.sizes() == b.sizes() && target.defined() &&
                 target.dtype() != DType::boolean && target.sizes() == Shape{a.size(0)},
             "cosine_embedding_loss: expected vectors [N, C], others of their sizes and targets [N] of 1 and -1, got ",
             a, ", ", b, " and ", target);
  const Tensor cosine = cosine_similarity(autocast_full(a), autocast_full(b));
  return reduced(where(eq(target, 1), 1 - cosine, where(eq(target, -1), relu(cosine - margin), 0)), reduction);
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
  const Tensor x = autocast_full(log_probs), t = target.to(x.dtype());
  const Tensor negative_entropy = mul(t, log(where(gt(t, 0.0), t, 1.0)));
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
  WEFT_CHECK(!target.is_floating() || options.ignore_index == CrossEntropyOptions{}.ignore_index,
             "cross_entropy: expected classes beside ignore_index, got probabilities ", target);
  const int64_t C = logits.size(-1);
  WEFT_CHECK(C > 0, "cross_entropy: expected at least one class, got ", logits);
  const int64_t N = logits.numel() / C;
  // The kernel sums in f32 whatever the dtype; only probabilities and weights would lose digits in 16 bits.
  const bool in_full =
      target.is_floating() || options.weight.defined() || kernels::takes(kernels::Variant::dense_logits);
  const Tensor x = with_rows((in_full ? autocast_full(logits) : logits).reshape({N, C}), in_full);
  const Tensor t = target.is_floating() ? target.to(x.dtype()).reshape({N, C}).contiguous()
                                        : target.to(DType::i64).reshape({N}).contiguous();
  if (!t.is_floating()) check_classes("cross_entropy", t, C, x.dtype(), options.ignore_index);

  if (options.weight.defined() || wants_gradient(t)) {  // a target that is learned, too: by ops
    const Tensor each = options.weight.defined() ? options.weight : Tensor::ones({C}, x.dtype(), x.device());
    const auto [losses, divisors] = weighted(x, t, each, options);
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

namespace {

/// On the CPU: all of `values` from low to high.
void check_range(const char* what, const Tensor& values, int64_t low, int64_t high) {
  if (values.device().kind != DeviceKind::cpu) return;
  for (const int64_t value : values.to_vector<int64_t>())
    WEFT_CHECK(value >= low && value <= high, "ctc_loss: expected ", what, " from ", low, " to ", high, ", got ",
               value);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options) {
  const OpScope scope("ctc_loss");
  WEFT_CHECK(log_probs.defined() && log_probs.is_floating() && log_probs.dim() == 3 && log_probs.size(0) > 0,
             "ctc_loss: expected log probabilities [T, N, C], got ", log_probs);
  const auto [T, N, C] = log_probs.dims<3>();
  WEFT_CHECK(targets.defined() && targets.dim() == 2 && targets.size(0) == N && !targets.is_floating() &&
                 targets.device() == log_probs.device(),
             "ctc_loss: expected targets i64[", N, ", S] on ", log_probs.device(), ", got ", targets);
  for (const Tensor* lengths : {&input_lengths, &target_lengths})
    WEFT_CHECK(lengths->defined() && lengths->dtype() == DType::i64 && lengths->sizes() == Shape{N} &&
                   lengths->device() == log_probs.device(),
               "ctc_loss: expected lengths i64[", N, "] on ", log_probs.device(), ", got ", *lengths);
  WEFT_CHECK(options.blank >= 0 && options.blank < C, "ctc_loss: expected a blank from 0 to ", C - 1, ", got ",
             options.blank);
  const int64_t S = targets.size(1), states = 2 * S + 1;
  check_range("input lengths", input_lengths, 1, T);
  check_range("target lengths", target_lengths, 0, S);
  constexpr double kNever = -1e30;  // as a logarithm; finite, so that no gradient is NaN
  const Tensor x = clamp(log_probs.to(log_probs.dtype() == DType::f64 ? DType::f64 : DType::f32), kNever, INFINITY);

  // The states: blank, target 0, blank, target 1, … blank.
  const Tensor places = Tensor::arange(S, DType::i64, x.device());
  const Tensor used = lt(places, target_lengths.unsqueeze(1));
  const Tensor classes = where(used, targets.to(DType::i64), options.blank);
  check_range("classes", classes, 0, C - 1);
  const Tensor blanks = Tensor::full({N, S, 1}, options.blank, DType::i64, x.device());
  const Tensor labels = concat({concat({blanks, classes.unsqueeze(2)}, 2).reshape({N, 2 * S}),
                                Tensor::full({N, 1}, options.blank, DType::i64, x.device())},
                               1);
  const Tensor spoken = gather(x, 2, labels.unsqueeze(0).expand({T, N, states}));
  // From two states before: where the class between is the blank, and the two differ.
  Tensor skips = ne(labels, options.blank);
  if (states > 2)
    skips = logical_and(skips, concat({Tensor::zeros({N, 2}, DType::boolean, x.device()),
                                       ne(labels.slice(1, 2, states - 2), labels.slice(1, 0, states - 2))},
                                      1));
  const auto later = [&](const Tensor& alpha, int64_t by) {
    return concat({Tensor::full({N, std::min(by, states)}, kNever, x.dtype(), x.device()),
                   alpha.slice(1, 0, std::max<int64_t>(states - by, 0))},
                  1);
  };
  const Tensor begins = lt(Tensor::arange(states, DType::i64, x.device()), 2).unsqueeze(0);
  Tensor alpha = where(begins, spoken.select(0, 0), kNever);
  for (int64_t t = 1; t < T; ++t) {
    const Tensor skipped = where(skips, later(alpha, 2), kNever);
    const Tensor next = add(logsumexp(stack({alpha, later(alpha, 1), skipped}), {0}), spoken.select(0, t));
    alpha = where(lt(Tensor::full({N, 1}, t, DType::i64, x.device()), input_lengths.unsqueeze(1)), next, alpha);
  }
  const Tensor last = affine(target_lengths, 2, 0).unsqueeze(1);
  const Tensor at_blank = gather(alpha, 1, last);
  const Tensor at_class = where(gt(last, 0), gather(alpha, 1, maximum(sub(last, 1), zeros_like(last))), kNever);
  const Tensor each = neg(logsumexp(concat({at_blank, at_class}, 1), {1}));
  const Tensor loss = where(gt(each.detach(), -kNever / 2), options.zero_infinity ? 0 : INFINITY, each);
  if (options.reduction != Reduction::mean) return reduced(loss, options.reduction);
  return mean(div(loss, maximum(target_lengths, Tensor::ones({}, DType::i64, x.device())).to(x.dtype())));
}

}  // namespace weft
