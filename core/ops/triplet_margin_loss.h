// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/ops/reduction.h"

namespace weft {

struct TripletMarginOptions {
  double margin = 1, eps = 1e-6;
  bool swap = false;  ///< the negative's distance from whichever of anchor and positive is nearer (Balntas et al. 2016)
  Reduction reduction = Reduction::mean;
};

/// max(0, d(anchor, positive) - d(anchor, negative) + margin) with d(a, b) = |a - b + eps|, the 2-norm over the last
/// dimension (Schroff et al. 2015, with distances in place of their squares, as in PyTorch). Errors: sizes differ.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options = {});

}  // namespace weft
