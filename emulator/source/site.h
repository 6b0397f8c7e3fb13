// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "emulator/machine/shadow.h"
#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// A Site is an offset into the program's code, or (kListed) the number of a SourceLine.
inline constexpr Site kListed = 1u << 31;

/// Where the program's code begins.
extern const uintptr_t program_base;

inline Site site_of(const void* return_address) {
  return static_cast<Site>(reinterpret_cast<uintptr_t>(return_address) - program_base) & (kListed - 1);
}
Site site_of(SourceLine where);

/// `relu.cu:12`
std::string site_text(Site site);

}  // namespace emulator::source
