// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "emulator/source/kernel_api.h"

namespace emulator::source {

/// A source location in 30 bits, so that shadow memory can hold one beside every access: an offset into the
/// program's code, or (kListed) the number of a SourceLine.
using Site = uint32_t;

inline constexpr Site kListed = 1u << 29;
/// A bit that sites leave free: a cp.async that is not waited for wrote here.
inline constexpr Site kInFlight = 1u << 30;

/// Where the program's code begins.
extern const uintptr_t program_base;

inline Site site_of(const void* return_address) {
  return static_cast<Site>(reinterpret_cast<uintptr_t>(return_address) - program_base) & (kListed - 1);
}
Site site_of(SourceLine where);

/// `relu.cu:12`
std::string site_text(Site site);

}  // namespace emulator::source
