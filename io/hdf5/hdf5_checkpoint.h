// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "io/checkpoint.h"

namespace weft {

/// Reads a checkpoint of an earlier version of Weft, an HDF5 file (`checkpoint_last.h5`). Damage is found before
/// libhdf5 sees the file, whatever bytes it hits. Errors: damaged, cut short, another HDF5 file; there is no HDF5: not
/// built in, or not found.
Checkpoint load_hdf5_checkpoint(const std::filesystem::path& path);

}  // namespace weft
