// SPDX-License-Identifier: Apache-2.0
// Stands in for the files hdf5_*.cpp where HDF5 was not found.
#include "data/hdf5_fields.h"
#include "data/hdf5_images.h"
#include "data/image_writer.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

[[noreturn]] void missing(const char* what, const std::filesystem::path& path) {
  fail("hdf5: cannot ", what, " ", path.string(),
       ": built without HDF5. On Debian: apt-get install libhdf5-dev, then configure again.");
}

[[noreturn]] void missing_fields(const std::filesystem::path& path) {
  fail("fields: expected a build with HDF5 for ", path.string(),
       ", got one without. Install libhdf5-dev, configure and build again");
}

}  // namespace

bool have_fields() { return false; }
std::unique_ptr<FieldFile> open_fields(const std::filesystem::path& path) { missing_fields(path); }
void write_fields(const std::filesystem::path& path, const FieldSize&, const std::function<void(int64_t, float*)>&) {
  missing_fields(path);
}

std::shared_ptr<const EncodedDataset> hdf5_images(const std::filesystem::path& path, const std::string&,
                                                  DecodeOptions) {
  missing("read", path);
}
std::vector<std::string> hdf5_parts(const std::filesystem::path& path) { missing("read", path); }

std::unique_ptr<ImageWriter> hdf5_writer(const std::filesystem::path& path, std::vector<std::string>) {
  missing("write", path);
}

}  // namespace weft::data
