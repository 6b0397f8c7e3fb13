// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/losses.h"

namespace weft {

struct CrossEntropyOptions {
  double label_smoothing = 0;   ///< e in [0, 1]: the target becomes (1 - e) t + e / C (Szegedy et al. 2016, section 7)
  int64_t ignore_index = -100;  ///< rows with this class count for nothing
  Reduction reduction = Reduction::mean;
  Tensor weight = {};  ///< of each class, [C], floating; none: 1
};

/// -sum over classes of t log_softmax(logits). logits [..., C]; target: classes (integers, the logits' sizes without C)
/// or probabilities (floating, the logits' sizes). The mean is over the rows that are not ignored. With
/// a weight each term of the sum counts as its class does, and the mean of classes is over the weights of the rows'
/// classes (as in PyTorch). The result is f32
/// (f64 for f64 logits), whatever the logits' dtype. Errors: sizes that do not fit; on the CPU a class outside [0, C)
/// that is not ignore_index, with its row (on other devices it makes the loss NaN).
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

}  // namespace weft
