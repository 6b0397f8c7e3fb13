// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>

#include "core/tensor.h"

namespace weft {

/// The dataset `name` (`x`, `train/x`) of an HDF5 file as a dense tensor of its sizes, of 0 to 8 dimensions, on the
/// CPU: floats of 16, 32 and 64 bits and integers, in either byte order; i8, i16 and u16 become i32, u32 becomes i64;
/// truths as h5py writes them. Errors, `hdf5: FILE: …`: no such file, no HDF5, no such dataset (with the nearest name).
/// Also another type, more dimensions, values in another file, a filter that libhdf5 lacks, a build without HDF5. Open
/// files of people you trust: damage done on purpose can crash libhdf5.
Tensor read_hdf5(const std::filesystem::path& path, const std::string& name);

}  // namespace weft
