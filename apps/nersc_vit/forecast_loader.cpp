// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc_vit/forecast_loader.h"

#include <algorithm>

#include "train/exit.h"

namespace weft::nersc_vit {

int64_t local_batch_size(const Options& o, const dist::Grid& grid) {
  if (o.local_batch_size > 0) return o.local_batch_size;
  const int ranks = grid.data()->size();
  if (o.global_batch_size % ranks != 0)
    throw train::UsageError(str("global_batch_size: ", o.global_batch_size, " samples do not divide by ", ranks,
                                " data ranks. Choose --local_batch_size"));
  return o.global_batch_size / ranks;
}

data::FieldLoader make_loader(const Options& o, const dist::Grid& grid, Device device, bool training) {
  const auto series =
      std::make_shared<const data::FieldSeries>(training ? o.train_data_path : o.valid_data_path,
                                                series_options(o, training ? o.limit_nsamples : o.limit_nsamples_val));
  // The ranks of a row see the same samples.
  const data::Sampler order(series->size(), {.seed = static_cast<uint64_t>(o.seed),
                                             .shuffle = training,
                                             .rank = grid.data_rank(),
                                             .world = grid.data()->size()});
  const int64_t batch = local_batch_size(o, grid);
  return data::FieldLoader(series, order,
                           {.batch_size = training ? batch : std::min(batch, order.size()),
                            .workers = static_cast<int>(o.num_data_workers),
                            .device = device});
}

}  // namespace weft::nersc_vit
