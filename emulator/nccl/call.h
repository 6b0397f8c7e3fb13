// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

/// Calls of the API, with all that NCCL demands of its caller checked. They throw Failure. What would leave the other
/// ranks waiting ends the communicator for all.

void call_collective(const CommunicatorPtr& c, Collective call, cudaStream_t stream);
void call_transfer(const CommunicatorPtr& c, Transfer transfer, cudaStream_t stream);
/// Where a reduction operator's factor lies until its collectives run.
void require_factor(Communicator& c, const void* factor, size_t bytes);

}  // namespace emulator::nccl
