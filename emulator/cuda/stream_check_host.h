// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <vector>

#include "emulator/cuda/stream_check.h"

// The host's own accesses are invisible; changed content gives them away. All under the state's lock.

namespace emulator::cuda::stream_check {

/// Keeps a sum of the source of a copy from pinned or managed memory. Fills the destination of a copy to pinned memory
/// with 0xff, so that a host that reads too early computes with NaN. Skips both if other unfinished operations may use
/// the memory, too. `work` may be nullptr.
void guard_host_memory(const std::shared_ptr<Trace>& trace, const std::shared_ptr<const Work>& work);
/// The operation has ended: other guards may use its memory.
void forget_guards(uint64_t number);
/// The copy is about to read its source.
void look_at_source(uint64_t number, const void* from);
/// The copies that are before `clock` have ended: the host may write their sources from now on.
void look_at_sources(const std::vector<uint32_t>& clock);

}  // namespace emulator::cuda::stream_check
