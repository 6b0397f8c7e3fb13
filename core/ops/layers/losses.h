// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/tensor.h"

namespace weft {

/// How a loss per row or element becomes the result.
enum class Reduction { mean, sum, none };

/// Each loss, their sum, or their mean.
Tensor reduced(const Tensor& losses, Reduction reduction);

/// (x - y)^2: its mean, its sum, or each. Errors: sizes differ.
Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

/// |x - y|: its mean, its sum, or each. Errors: sizes differ.
Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);

/// d^2 / (2 beta) where d = |x - y| < beta, else d - beta / 2 (Girshick 2015): its mean, its sum, or each. Errors:
/// sizes differ, beta is not positive.
Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta = 1, Reduction reduction = Reduction::mean);

/// d^2 / 2 where d = |x - y| < delta, else delta (d - delta / 2) (Huber 1964): its mean, its sum, or each. Errors:
/// sizes differ, delta is not positive.
Tensor huber_loss(const Tensor& x, const Tensor& y, double delta = 1, Reduction reduction = Reduction::mean);

struct GaussianNllOptions {
  bool full = false;  ///< with the constant log(2 pi) / 2
  double eps = 1e-6;  ///< the least variance; below it the gradient of var is 0
  Reduction reduction = Reduction::mean;
};

/// (log var + (x - target)^2 / var) / 2 for predictions x of variance var: its mean, its sum, or each. var has x's
/// sizes, or 1 as the last one, or lacks the last. Errors: sizes that do not fit, not floating; on the CPU a negative
/// variance.
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         const GaussianNllOptions& options = {});

/// x / max(|x|, eps), |x| the 2-norm along `dim`. Errors: not floating.
Tensor normalize(const Tensor& x, Integer dim = -1, double eps = 1e-12);
/// a b / (max(|a|, eps) max(|b|, eps)) along `dim`, with broadcasting. Errors: not floating.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, Integer dim = -1, double eps = 1e-8);
/// 1 - cos(a, b) where target is 1, max(0, cos(a, b) - margin) where it is -1, else 0: a, b [N, C], target [N]
/// (numbers of any dtype). Errors: sizes that do not fit, a bool target.
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin = 0,
                             Reduction reduction = Reduction::mean);

struct NllLossOptions {
  int64_t ignore_index = -100;  ///< rows with this class count for nothing
  Reduction reduction = Reduction::mean;
};

/// -log_probs[n, target[n]]: log_probs [N, C], target integers [N]. The mean is over the rows that are not ignored.
/// Errors: sizes that do not fit; on the CPU a class outside [0, C).
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const NllLossOptions& options = {});

/// t (log t - log_probs), element by element, 0 where the probability t is 0: its sum, its mean over all elements, or
/// each. The divergence of a batch [N, C] is the sum over N (PyTorch calls that "batchmean").
/// Errors: sizes differ.
Tensor kl_div(const Tensor& log_probs, const Tensor& target, Reduction reduction = Reduction::mean);

struct BceWithLogitsOptions {
  Tensor positive_weight = {};  ///< weight of a positive target; broadcasts over the logits; none: 1
  Reduction reduction = Reduction::mean;
};

/// -(p t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))): mean, sum, or each. Logits x and targets t in [0, 1] have the
/// same sizes; p is positive_weight. Large logits of either sign lose nothing. The result is f32 (f64 for
/// f64 logits). Errors: sizes differ, t is not floating.
Tensor bce_with_logits(const Tensor& x, const Tensor& target, const BceWithLogitsOptions& options = {});

struct TripletMarginOptions {
  double margin = 1, eps = 1e-6;
  bool swap = false;  ///< the negative's distance from whichever of anchor and positive is nearer (Balntas et al. 2016)
  Reduction reduction = Reduction::mean;
};

/// max(0, d(anchor, positive) - d(anchor, negative) + margin). d(a, b) = |a - b + eps| is the 2-norm over the last
/// dimension (Schroff et al. 2015, with distances in place of their squares, as in PyTorch). Errors: sizes differ.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options = {});

struct CrossEntropyOptions {
  double label_smoothing = 0;   ///< e in [0, 1]: the target becomes (1 - e) t + e / C (Szegedy et al. 2016, section 7)
  int64_t ignore_index = -100;  ///< rows with this class count for nothing
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< weight of each class, [C], floating; none: 1
};

/// -sum over classes of t log_softmax(logits). logits [..., C]; target: classes (integers, the logits' sizes without C)
/// or probabilities (floating, the logits' sizes), which have a gradient, too. The mean is over the rows that are not
/// ignored. `weight` scales each term of the sum by its class; the mean of classes is divided by the weights of the
/// rows' classes (as in PyTorch). The result is f32 (f64 for f64 logits), whatever the logits' dtype. The gradient is
/// written over the logits where nobody else holds them and the graph is not retained. Errors: sizes that do not fit;
/// on the CPU a class outside [0, C) that is not ignore_index, with its row (on other devices it makes the loss NaN);
/// probabilities beside an ignore_index.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct CtcLossOptions {
  int64_t blank = 0;
  bool zero_infinity = false;  ///< a row whose target does not fit its input counts 0, else infinity
  Reduction reduction = Reduction::mean;
};

/// -log of the probability that log_probs [T, N, C] spell the targets [N, S] (integers) with blanks between them
/// (Graves et al. 2006). Row n has input_lengths[n] of T steps and target_lengths[n] of S classes (i64 [N]); the mean
/// is of each loss divided by its target's length. In f32 (f64 for f64), in T steps by ops. Errors: sizes that do not
/// fit; on the CPU lengths or classes out of range.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CtcLossOptions& options = {});

struct LinearCrossEntropyOptions {
  double label_smoothing = 0;  ///< as in CrossEntropyOptions, like ignore_index
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;  ///< or the sum
  int64_t rows = 0;                       ///< rows of logits at a time; 0: at most 256 MiB of logits
};

/// cross_entropy(linear(x, weight), target) without holding all logits: x [..., features], weight [classes, features],
/// target classes of x's sizes without the last. The forward makes the gradients, too, from each chunk of logits, and
/// keeps them, in f32 for 16-bit types. The backward only scales them. Under autocast the product is in the low
/// precision. Errors: sizes, dtypes or devices that do not fit, and classes as in cross_entropy.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& target,
                            const LinearCrossEntropyOptions& options = {});

}  // namespace weft
