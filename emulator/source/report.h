// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <ostream>
#include <string>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// `0xffff0000`
std::string hex(uint64_t value);

/// `0-15, 17` for a set of lanes.
std::string lanes_text(uint32_t lanes);

/// `relu.cu:12`: the file without its folders.
std::ostream& operator<<(std::ostream& out, const SourceLine& where);

/// `relu.cu:12` for an address in the program's code, found by addr2line; `address 0x…` without it. Frames of the
/// emulator's own headers are skipped. Slow: for reports only.
std::string source_line(const void* code_address);

}  // namespace emulator::source
