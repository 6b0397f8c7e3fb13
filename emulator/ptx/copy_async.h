// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/addresses.h"

namespace emulator::ptx {

/// All cp.async that these lanes have issued take effect now: of lanes that end, or that an mbarrier waits for.
void land_copies_of(Warp& w, uint32_t lanes);
void land_copies(Warp& w, int lane, const SharedPlace& mbarrier);
/// Does one of these lanes have a cp.async that has not taken effect?
bool has_copies(const Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
