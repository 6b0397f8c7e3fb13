// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/train_image/experiment.h"
#include "train/confusion_matrix.h"
#include "train/progress.h"

namespace weft::train_image {

struct Evaluation {
  double loss = 0;                  ///< mean cross entropy per image
  double accuracy = 0;              ///< share of right answers
  int64_t correct = 0, images = 0;  ///< of all ranks
  double images_per_second = 0;
  train::ConfusionMatrix confusion{1};
};

/// Runs the experiment's model, in evaluation mode, over everything that the ranks' loaders have, each image once;
/// the counts of all ranks are added up. All ranks call it. `progress` shows how far this rank is.
Evaluation evaluate(Experiment& experiment, train::Progress& progress);

}  // namespace weft::train_image
