// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace weft {

/// Whether this process can use HDF5 files, in one line: `libhdf5_serial.so.103, HDF5 1.10.8` (it is loaded by this
/// call), or why that cannot be loaded, or that Weft was built without HDF5.
std::string describe_hdf5();

}  // namespace weft
