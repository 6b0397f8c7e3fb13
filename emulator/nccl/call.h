// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

/// Calls of the API, with all of NCCL's requirements checked. They throw Failure. An error that would leave the other
/// ranks waiting ends the communicator for all.

ncclResult_t call_collective(const CommunicatorPtr& c, Collective call, cudaStream_t stream);
ncclResult_t call_transfer(const CommunicatorPtr& c, Transfer transfer, cudaStream_t stream);
/// The memory of a reduction operator's factor until its collectives run.
void require_factor(Communicator& c, const void* factor, size_t bytes);

}  // namespace emulator::nccl
