// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <vector>

#include "data/field_series.h"
#include "dist/group/world.h"

namespace weft::nersc_vit {

/// Over the validation part.
struct Score {
  double loss = 0;
  std::vector<double> rmse;  ///< of each channel, in standard deviations
};

/// The mean over the samples of at most `most_steps` of the loader's steps on all ranks. `shown` gets the last one's
/// input, target and prediction. All ranks call it.
Score evaluate(data::FieldLoader& loader, int64_t most_steps, const dist::World& ranks,
               const std::function<Tensor(const Tensor&)>& forward,
               const std::function<void(const std::vector<Tensor>&)>& shown);

}  // namespace weft::nersc_vit
