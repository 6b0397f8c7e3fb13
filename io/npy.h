// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "core/tensor.h"

namespace weft {

/// NumPy's file of one array, versions 1 to 3 of the format (numpy.lib.format): little-endian f4, f8, i4, i8 or u1 in C
/// order, at most 1 GiB. On the CPU. Errors: `npy: FILE: expected …, got …`.
Tensor read_npy(const std::filesystem::path& path);

/// Writes version 1. Errors: another dtype than f32, f64, i32, i64, u8; the system's message.
void write_npy(const std::filesystem::path& path, const Tensor& array);

}  // namespace weft
