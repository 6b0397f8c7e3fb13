// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "emulator/source/kernel_api.h"

// The checked build's (WEFT_SIMT_CHECK=ON, check.cpp) records of memory and time; in the plain build (no_check.cpp)
// all of this does nothing.

namespace emulator {
class LaunchClock;
}

namespace emulator::source {

class Worker;

/// A device allocation begins; pinned memory counts as written.
void check_allocated(void* data, size_t bytes, bool written);
/// The host wrote device memory, or copied within it.
void check_copied(void* destination, const void* source, size_t bytes);
void check_filled(void* destination, size_t bytes);

/// A grid of `blocks` blocks begins, in clusters of `cluster`. The caller keeps the result until all of its blocks are
/// done: until then no other one begins.
std::shared_ptr<LaunchClock> check_launch(uint64_t blocks, uint64_t cluster);
void check_block_begin(Worker& worker, LaunchClock* launch);
/// `error` is the block's error, or empty; findings at the end of the block are appended.
void check_block_end(Worker& worker, std::string& error);
/// All threads of the block have met in a barrier.
void check_barrier();
/// The lanes of `mask` have met in a __syncwarp; `members` are the lanes that the warp has.
void check_sync_warp(int warp, uint32_t mask, uint32_t members);
void check_fence(bool own_block_only);

/// Kernel code reads [address, address + bytes) through an emulated instruction.
void check_read(const void* address, size_t bytes, SourceLine where);

/// A cp.async to shared memory was issued: until it is waited for, no thread may touch its bytes or write its source.
void check_copy_issued(const void* destination, size_t bytes, const void* source, size_t source_bytes,
                       SourceLine where);
void check_copy_done(const void* destination, size_t bytes, const void* source, size_t source_bytes, SourceLine where);

/// A constant: whether any of this does something.
bool access_checked();
/// As check_read.
void check_write(const void* address, size_t bytes, SourceLine where);

// Hopper. `owner` is the block in whose shared memory a barrier or a tile lies.

/// mbarrier `number` of the running block was made.
void check_mbarrier_made(int number);
/// The running thread uses the 8 bytes of a barrier.
void check_mbarrier_access(const void* address, SourceLine where);
/// It arrives: what it did before comes before what follows the phase's end.
void check_mbarrier_release(Worker& owner, int number);
void check_mbarrier_phase(Worker& owner, int number);
/// It has waited for a phase of its block's barrier.
void check_mbarrier_acquire(int number);
void check_proxy_fence();

/// TMA writes `bytes` bytes from now until check_load_done, as the running thread's doing.
void check_load_issued(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where);
void check_load_done(Worker& owner, const void* shared, int bytes, int barrier, SourceLine where);
/// TMA reads them from now until check_stores_read. Returns the moment.
uint32_t check_store_issued(const void* shared, int bytes, SourceLine where);
/// A thread has waited for its stores issued before a moment, or for all of them.
void check_stores_read(int thread, std::optional<uint32_t> before);
void check_store_written(const void* global, size_t bytes, int thread, SourceLine where);

/// wgmma `number` of the running thread's warpgroup reads 16 bytes from now until check_warpgroup_done.
void check_wgmma_read(size_t number, const void* shared, SourceLine where);
/// All threads of the warpgroup have waited for the wgmmas before this number.
void check_warpgroup_done(int warpgroup, size_t number);

void check_named_arrive(int id);
void check_named_complete(int id);
void check_named_acquire(int id);
void check_cluster_arrive();
void check_cluster_barrier();
void check_cluster_acquire();

}  // namespace emulator::source
