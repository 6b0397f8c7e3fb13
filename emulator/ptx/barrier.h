// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/warp.h"

namespace emulator::ptx {

/// Lanes that are about to end and have arrived at the cluster's barrier in the phase that goes on: they no longer count
/// as threads, so their arrivals are taken back.
void leave_cluster_barrier(Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
