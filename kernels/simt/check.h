// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/simt/kernel_api.h"

// What the checked build (WEFT_SIMT_CHECK=ON, check.cpp) knows about memory and time; in the plain build (no_check.cpp)
// all of this does nothing.

namespace weft::emulator {

class LaunchClock;
class Worker;

/// A device allocation begins; pinned memory counts as written.
void check_allocated(void* data, size_t bytes, bool written);
/// The host wrote device memory, or copied from one place in it to another.
void check_copied(void* destination, const void* source, size_t bytes);
void check_filled(void* destination, size_t bytes);

/// A grid of `blocks` blocks begins. Whoever runs its blocks keeps the result until all of them are done.
std::shared_ptr<LaunchClock> check_launch(uint64_t blocks);
void check_block_begin(Worker& worker, LaunchClock* launch, uint64_t block);
/// `error` is what the block failed with, or empty; what is found only at the end of a block is added.
void check_block_end(Worker& worker, std::string& error);
/// All threads of the block have met in a barrier.
void check_barrier();
/// The lanes of `mask` have met in a __syncwarp; `members` are the lanes that the warp has.
void check_sync_warp(int warp, uint32_t mask, uint32_t members);
void check_fence(bool own_block_only);

/// Kernel code reads [address, address + bytes) through an emulated instruction.
void check_read(const void* address, size_t bytes, SourceLine where);

/// A cp.async to shared memory was issued: until it is waited for, nobody may touch its bytes, nor write its source.
/// Returns the moment, for check_copy_done.
uint32_t check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                           SourceLine where);
void check_copy_done(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where,
                     uint32_t issued);

}  // namespace weft::emulator
