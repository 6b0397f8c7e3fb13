// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "apps/support/parallel.h"
#include "apps/support/progress.h"

namespace weft::finetune {

/// Over the whole dev part.
struct Score {
  double loss = 0, accuracy = 0;
  double f1 = 0;  ///< of class 1, where there are two classes: 2 P R / (P + R)
};

/// Runs the model, which is in evaluation mode, over all texts, each once; the counts of all ranks are added up. All
/// ranks call it. `progress` may be null.
Score evaluate(const Options& options, const support::Ranks& ranks, support::Parallel& parallel, const Texts& texts,
               int64_t padding_id, support::Progress* progress);

}  // namespace weft::finetune
