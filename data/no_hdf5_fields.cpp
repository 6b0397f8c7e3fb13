// SPDX-License-Identifier: Apache-2.0
// Stands in for hdf5_fields.cpp where HDF5 was not found.
#include "data/hdf5_fields.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

[[noreturn]] void missing(const std::filesystem::path& path) {
  fail("fields: expected a build with HDF5 for ", path.string(),
       ", got one without. Install libhdf5-dev, configure and build again");
}

}  // namespace

bool have_fields() { return false; }
std::unique_ptr<FieldFile> open_fields(const std::filesystem::path& path) { missing(path); }
void write_fields(const std::filesystem::path& path, const FieldSize&, const std::function<void(int64_t, float*)>&) {
  missing(path);
}

}  // namespace weft::data
