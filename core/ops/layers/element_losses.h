// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/layers/losses.h"
#include "core/tensor.h"

namespace weft {

/// -(t log p + (1 - t) log(1 - p)) of probabilities p, where logarithms are at least -100: its mean, its sum, or each.
/// bce_with_logits() is better. Errors: sizes differ, not floating.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, Reduction reduction = Reduction::mean);
struct PoissonNllOptions {
  bool log_input = true;
  double eps = 1e-8;
  Reduction reduction = Reduction::mean;
};
/// e^x - t x, or with `log_input` false x - t log(x + eps): its mean, its sum, or each. Errors: sizes differ.
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, const PoissonNllOptions& options = {});
/// max(0, margin - y (a - b)), y of 1 and -1, with broadcasting: its mean, its sum, or each.
Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin = 0,
                           Reduction reduction = Reduction::mean);
/// x where y is 1, max(0, margin - x) where it is -1: its mean, its sum, or each. Errors: sizes differ.
Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin = 1, Reduction reduction = Reduction::mean);
/// log(1 + e^(-y x)), y of 1 and -1: its mean, its sum, or each. Errors: sizes differ.
Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction = Reduction::mean);
/// max(0, margin - x[n, t[n]] + x[n, c])^p, p 1 or 2, of each sample: the sum over the other classes c, divided by C.
/// Its mean over N, its sum, or each. x is [N, C]. Errors: other sizes, classes t [N] that are not i64.
Tensor multi_margin_loss(const Tensor& x, const Tensor& t, int p = 1, double margin = 1,
                         Reduction reduction = Reduction::mean);
/// The 2-norm of a - b + eps over the last dimension, with broadcasting.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double eps = 1e-6);

}  // namespace weft
