// SPDX-License-Identifier: Apache-2.0
// Stands in for hdf5_checkpoint.cpp where HDF5 was not found.
#include "io/hdf5/hdf5_checkpoint.h"

namespace weft {

Checkpoint load_hdf5_checkpoint(const std::filesystem::path& path) {
  fail("checkpoint: ", path.string(), " is an HDF5 file of an earlier version, and this build has no HDF5. Install ",
       "libhdf5-dev, configure and build again, or convert the file where that is done: weft-weights convert ",
       "--checkpoint OLD.h5 NEW.safetensors");
}

}  // namespace weft
