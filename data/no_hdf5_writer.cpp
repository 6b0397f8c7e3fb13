// SPDX-License-Identifier: Apache-2.0
#include "data/image_writer.h"
#include "kernels/error.h"

namespace weft::data {

std::unique_ptr<ImageWriter> hdf5_writer(const std::filesystem::path& path, std::vector<std::string>) {
  fail("hdf5: cannot write ", path.string(),
       ": built without HDF5. On Debian: apt-get install libhdf5-dev, then configure again.");
}

}  // namespace weft::data
