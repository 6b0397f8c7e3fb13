// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "apps/finetune/options.h"
#include "apps/finetune/texts.h"
#include "train/engine.h"

namespace weft::finetune {

/// Over the whole dev part.
struct Score {
  double loss = 0;
  double accuracy = 0;               ///< share of right classes
  double f1 = 0;                     ///< class 1's, if there are two classes: 2 P R / (P + R)
  double pearson = 0, spearman = 0;  ///< a regression's correlations of predictions and scores, and of their ranks
};

/// Pearson's correlation of two rows of numbers; 0 where one of them is constant.
double correlation(const std::vector<double>& x, const std::vector<double>& y);
/// The places of the values in their order, from 1; equal ones have the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values);

/// Runs the model, which is in evaluation mode, over all texts, each once; the counts of all ranks are added up. All
/// ranks call it.
Score evaluate(train::Engine& engine, const Options& options, const Texts& texts, int64_t padding_id);

}  // namespace weft::finetune
