// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/instructions/addresses.h"

namespace emulator::ptx {

/// Completes all cp.async of these lanes now, because the lanes end or an mbarrier waits for the copies.
void land_copies_of(Warp& w, uint32_t lanes);
void land_copies(Warp& w, int lane, const SharedPlace& mbarrier);
/// For the race check: reports cp.async of ending lanes for which no thread has waited.
void report_copies_of(Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
