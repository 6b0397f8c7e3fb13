// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace emulator {

/// The function of an ELF file that holds an address (as the file numbers them), also one that is not exported. Empty
/// when the file has no symbols there. `begin` is set.
std::string local_symbol(const char* path, uint64_t address, uint64_t& begin);

}  // namespace emulator
