// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/nersc_vit/options.h"
#include "data/field_series.h"
#include "dist/group/process_group.h"

namespace weft::nersc_vit {

/// Samples of a step on all data ranks: --local_batch_size on each, or the key global_batch_size, which need not divide
/// by them. Errors: UsageError where a rank would have none.
int64_t samples_per_step(const Options& options, const dist::Grid& grid);

/// The fields of the training or the validation part that this rank's row sees, each of them on one row. Training, as
/// in the original, leaves out what does not fill a step. Errors: those of series_options() and FieldSeries.
data::FieldLoader make_loader(const Options& options, const dist::Grid& grid, Device device, bool training);

}  // namespace weft::nersc_vit
