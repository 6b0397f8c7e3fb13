// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "train/engine.h"

namespace weft::finetune {

/// Over the whole dev part.
struct Score {
  double loss = 0, accuracy = 0;
  double f1 = 0;  ///< of class 1, where there are two classes: 2 P R / (P + R)
};

/// Runs the model, which is in evaluation mode, over all texts, each once; the counts of all ranks are added up. All
/// ranks call it.
Score evaluate(train::Engine& engine, const Options& options, const Texts& texts, int64_t padding_id);

}  // namespace weft::finetune
