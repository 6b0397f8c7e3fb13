// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/addresses.h"

namespace emulator::ptx {

/// All cp.async that these lanes have issued take effect now: of lanes that end, or that an mbarrier waits for.
void land_copies_of(Warp& w, uint32_t lanes);
void land_copies(Warp& w, int lane, const SharedPlace& mbarrier);
/// The check of races: lanes end whose cp.async nobody waits for.
void report_copies_of(Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
