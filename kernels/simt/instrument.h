// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace weft::emulator {

/// The instrumented code around `instruction` reads or writes memory.
void instrumented_read(const void* address, size_t bytes, const void* instruction);
void instrumented_write(const void* address, size_t bytes, const void* instruction);

}  // namespace weft::emulator
