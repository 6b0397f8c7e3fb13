// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "apps/nersc_vit/options.h"
#include "data/field_loader.h"
#include "dist/group/grid.h"

namespace weft::nersc_vit {

/// Samples of a step on each data rank: --local_batch_size, or the key global_batch_size over the data ranks. Errors:
/// UsageError where they do not divide.
int64_t local_batch_size(const Options& options, const dist::Grid& grid);

/// The fields of the training or the validation part that this rank's row sees. Errors: those of series_options() and
/// FieldSeries.
data::FieldLoader make_loader(const Options& options, const dist::Grid& grid, Device device, bool training);

}  // namespace weft::nersc_vit
