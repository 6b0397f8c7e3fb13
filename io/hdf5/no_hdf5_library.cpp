// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5/hdf5_state.h"
#include "io/hdf5/read_hdf5.h"
#include "kernels/error.h"

namespace weft {

std::string describe_hdf5() { return "built without HDF5"; }

Tensor read_hdf5(const std::filesystem::path& path, const std::string&) {
  fail("hdf5: cannot read ", path.string(),
       ": built without HDF5. On Debian: apt-get install libhdf5-dev, then configure again.");
}

}  // namespace weft
