// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "apps/support/confusion_matrix.h"
#include "apps/support/ranks.h"
#include "data/loader.h"
#include "nn/module.h"

namespace weft::train_image {

struct Evaluation {
  double loss = 0;                  ///< mean cross entropy per picture
  double accuracy = 0;              ///< share of right answers
  int64_t correct = 0, images = 0;  ///< of all ranks
  double images_per_second = 0;
  support::ConfusionMatrix confusion{1};
};

/// Runs `forward` (of `model`, which is in evaluation mode meanwhile) over everything that the ranks' loaders have,
/// each picture once; the counts of all ranks are added up. `loader` may be null: more ranks than pictures.
/// `precision`: of the convolutions.
Evaluation evaluate(nn::Module& model, const std::function<Tensor(const Tensor&)>& forward, data::Loader* loader,
                    int classes, DType precision, const support::Ranks& ranks);

}  // namespace weft::train_image
