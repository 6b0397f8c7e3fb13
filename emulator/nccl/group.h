// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "emulator/nccl/communicator.h"

namespace emulator::nccl {

// ncclGroupStart and ncclGroupEnd, per thread. Without them each call is a group of its own.

bool in_group();
void start_group();
/// Throws Failure; ncclInProgress: work of communicators that do not block goes on.
ncclResult_t end_group();
/// A call in the group has failed: so will its end.
void spoil_group(ncclResult_t code);

/// ncclInProgress: the communicator does not block, and a thread of its own puts the call into its stream.
ncclResult_t add_to_group(const CommunicatorPtr& c, const Collective& call, cudaStream_t stream);
ncclResult_t add_to_group(const CommunicatorPtr& c, const Transfer& transfer, cudaStream_t stream);
/// Work that waits for the other ranks, such as ncclCommInitRank. All of a group's runs at once. `owner` says whether
/// the call blocks.
ncclResult_t add_to_group(const CommunicatorPtr& owner, std::function<ncclResult_t()> work);

}  // namespace emulator::nccl
