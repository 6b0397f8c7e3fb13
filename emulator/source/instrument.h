// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace emulator::source {

/// The instrumented code around `instruction` reads or writes 1, 2, 4, 8 or 16 bytes.
template <size_t kBytes>
void instrumented_read(const void* address, const void* instruction);
template <size_t kBytes>
void instrumented_write(const void* address, const void* instruction);
/// Any number of bytes.
void instrumented_read_range(const void* address, size_t bytes, const void* instruction);
void instrumented_write_range(const void* address, size_t bytes, const void* instruction);

}  // namespace emulator::source
