// SPDX-License-Identifier: Apache-2.0
#include "data/hdf5_images.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

[[noreturn]] void missing(const std::filesystem::path& path) {
  fail("hdf5: cannot read ", path.string(),
       ": built without HDF5. On Debian: apt-get install libhdf5-dev, then configure again.");
}

}  // namespace

std::shared_ptr<const EncodedDataset> hdf5_images(const std::filesystem::path& path, const std::string&,
                                                    DecodeOptions) {
  missing(path);
}
std::vector<std::string> hdf5_parts(const std::filesystem::path& path) { missing(path); }

}  // namespace weft::data
