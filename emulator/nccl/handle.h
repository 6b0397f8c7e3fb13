// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

// Handles of communicators. Destroyed ones stay known, so that a use after the end is reported.

ncclComm_t add_handle(const CommunicatorPtr& c);
/// Throws Failure for nullptr, an unknown handle, or a destroyed one.
CommunicatorPtr find(ncclComm_t handle);
void forget(ncclComm_t handle);

/// A copy of the caller's configuration, or of `inherited` without one. Throws Failure for one that no NCCL made.
ncclConfig_t checked(const ncclConfig_t* config, const ncclConfig_t* inherited = nullptr);

// The calls that make communicators. `result` gets its handle at once; of a call that blocks and fails, none.
ncclResult_t make_rank(ncclComm_t* result, int size, const ncclUniqueId& id, int rank, int device,
                       const ncclConfig_t& config);
ncclResult_t split(ncclComm_t handle, int color, int key, ncclComm_t* result, const ncclConfig_t* config);
ncclResult_t shrink(ncclComm_t handle, const int* excluded, int count, ncclComm_t* result, const ncclConfig_t* config,
                    bool abort);

}  // namespace emulator::nccl
