// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "core/ops/complex.h"
#include "core/tensor.h"

namespace weft {

/// NumPy's file of one array, versions 1 to 3 of the format (numpy.lib.format), little-endian, in C or Fortran order:
/// f2, f4, f8, i4, i8, u1, b1; i1, i2 and u2 as i32, u4 as i64. On the CPU. Complex arrays (c8, c16) are read as their
/// parts
/// [..., 2], for view_as_complex(). Errors: `npy: FILE: expected …, got …`.
Tensor read_npy(const std::filesystem::path& path);

/// Writes version 1. Errors: another dtype than f16, f32, f64, i32, i64, u8, bool; the system's message.
void write_npy(const std::filesystem::path& path, const Tensor& array);
/// Writes c8 or c16.
void write_npy(const std::filesystem::path& path, const ComplexTensor& array);

/// The arrays of an archive that np.savez or np.savez_compressed wrote, by name. Errors: `npz: FILE: …`: those of
/// read_npy() and ZipArchive, an entry that is no array.
std::map<std::string, Tensor> read_npz(const std::filesystem::path& path);

/// Writes an archive that np.load reads. Errors: those of write_npy(), no array, a name that is empty, no UTF-8 or has
/// a `/`.
void write_npz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);

}  // namespace weft
