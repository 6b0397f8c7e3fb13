// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/instructions/addresses.h"

namespace emulator::ptx {

/// Completes all cp.async of these lanes now, because the lanes end.
void land_copies_of(Warp& w, uint32_t lanes);
/// The mbarrier will report the lane's cp.async so far, but for those that another mbarrier reports. Returns their
/// number.
uint64_t claim_copies(Warp& w, int lane, const SharedPlace& mbarrier);
/// Completes the lane's first `count` cp.async now, because the mbarrier waits for them.
void land_copies(Warp& w, int lane, const SharedPlace& mbarrier, uint64_t count);
/// For the race check: reports cp.async of ending lanes for which no thread has waited.
void report_copies_of(Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
