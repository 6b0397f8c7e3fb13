// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/support/confusion_matrix.h"
#include "data/loader.h"
#include "nn/module.h"

namespace weft::train_image {

struct Evaluation {
  double loss = 0;      ///< mean cross entropy per picture
  double accuracy = 0;  ///< share of right answers
  int64_t correct = 0, images = 0;
  double images_per_second = 0;
  support::ConfusionMatrix confusion{1};
};

/// Runs the model, in evaluation mode, over everything the loader has; restores the mode. `precision`: of the
/// convolutions.
Evaluation evaluate(nn::Module& model, data::Loader& loader, int classes, DType precision);

}  // namespace weft::train_image
