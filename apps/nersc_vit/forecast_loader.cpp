// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast_loader.h"

#include "train/exit.h"

namespace weft::nersc_vit {

int64_t samples_per_step(const Options& o, const dist::Grid& grid) {
  const int ranks = grid.data()->size();
  if (o.local_batch_size > 0) return o.local_batch_size * ranks;
  if (o.global_batch_size < ranks)
    throw train::UsageError(str("global_batch_size: expected at least one sample for each of ", ranks,
                                " data ranks, got ", o.global_batch_size));
  return o.global_batch_size;
}

data::FieldLoader make_loader(const Options& o, const dist::Grid& grid, Device device, bool training) {
  const auto series =
      std::make_shared<const data::FieldSeries>(training ? o.train_data_path : o.valid_data_path,
                                                series_options(o, training ? o.limit_nsamples : o.limit_nsamples_val));
  // The ranks of a row see the same samples.
  const data::Sampler order(series->size(), {.seed = static_cast<uint64_t>(o.seed),
                                             .shuffle = training,
                                             .rank = grid.data_rank(),
                                             .world = grid.data()->size(),
                                             .tail = data::Tail::joined,
                                             .step = samples_per_step(o, grid)});
  return data::FieldLoader(series, order,
                           {.workers = static_cast<int>(o.num_data_workers), .drop_last = training, .device = device});
}

}  // namespace weft::nersc_vit
