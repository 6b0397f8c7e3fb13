// SPDX-License-Identifier: Apache-2.0
// Stands in for hdf5.cpp where HDF5 was not found.
#include "apps/support/checkpoint.h"

namespace weft::support {
namespace {

[[noreturn]] void missing(const std::filesystem::path& path) {
  fail("checkpoint: expected a build with HDF5 for ", path.string(),
       ", got one without. Install libhdf5-dev, configure and build again");
}

}  // namespace

bool have_checkpoints() { return false; }
void prepare_checkpoints() {}
void save_checkpoint(const std::filesystem::path& path, const Checkpoint&) { missing(path); }
Checkpoint load_checkpoint(const std::filesystem::path& path) { missing(path); }

}  // namespace weft::support
