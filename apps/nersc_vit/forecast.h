// SPDX-License-Identifier: Apache-2.0
// What the trainer does with fields: loads, judges and draws them.
#pragma once
#include <functional>
#include <vector>

#include "apps/nersc_vit/options.h"
#include "data/field_series.h"
#include "dist/group/world.h"
#include "train/record/canvas.h"

namespace weft::nersc_vit {

/// Samples of a step on all data ranks: --local_batch_size on each, or the key global_batch_size, which need not divide
/// by them. Errors: UsageError where a rank would have none.
int64_t samples_per_step(const Options& options, const dist::Grid& grid);

/// The fields of the training or the validation part that this rank's row sees, each of them on one row. Training, as
/// in the original, leaves out what does not fill a step. Errors: those of series_options() and FieldSeries.
data::FieldLoader make_loader(const Options& options, const dist::Grid& grid, Device device, bool training);

/// Over the validation part.
struct Score {
  double loss = 0;
  std::vector<double> rmse;  ///< error per channel, in standard deviations
};

/// The mean over the samples of at most `most_steps` of the loader's steps on all ranks. `shown` gets the last one's
/// input, target and prediction. All ranks call it.
Score evaluate(data::FieldLoader& loader, int64_t most_steps, const dist::World& ranks,
               const std::function<Tensor(const Tensor&)>& forward,
               const std::function<void(const std::vector<Tensor>&)>& shown);

/// One channel of the first sample of each [N, rows, columns, channels], side by side: blue below 0, red above, full
/// colour at three standard deviations.
train::Canvas draw_channel(const std::vector<Tensor>& fields, int64_t channel);

}  // namespace weft::nersc_vit
