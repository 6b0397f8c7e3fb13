// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/run/warp.h"

namespace emulator::ptx {

/// Revokes the arrivals, in the current phase of the cluster's barrier, of lanes that are about to end: they no longer
/// count as threads.
void leave_cluster_barrier(Warp& w, uint32_t lanes);

}  // namespace emulator::ptx
