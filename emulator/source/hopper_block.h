// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "emulator/source/bulk_copy.h"
#include "emulator/source/cluster.h"
#include "emulator/source/mbarrier.h"
#include "emulator/source/warpgroup.h"
#include "emulator/source/wgmma.h"

namespace emulator::source {

class Worker;

/// The state of a block that uses instructions of Hopper; made on first use.
struct HopperBlock {
  Mbarriers barriers;
  BulkCopies copies;
  std::array<NamedBarrier, 16> named;
  RegisterFile registers;
  std::array<Warpgroup, 8> warpgroups;
  ClusterBarrier own_barrier;                   ///< of a block that is in no cluster
  std::array<int64_t, 1024> cluster_arrival{};  ///< phase in which a thread has arrived and not waited, or -1

  void begin(int threads);
};

/// A thread is about to end: ends the kernel when it has asynchronous work under way.
void check_hopper_exit(Worker& worker);
/// All threads of the block have exited.
void finish_hopper_block(Worker& worker);
/// A thread less is waited for.
void cluster_thread_exited(Worker& worker);

/// For deliveries of bytes to a barrier of `owner`.
void mbarrier_complete_bytes(Worker& owner, void* address, int64_t bytes, int thread, SourceLine where);
/// The barrier that a load names, or a remote arrival: it must have been published.
Mbarrier& mbarrier_for_load(Worker& owner, void* address, const char* what, SourceLine where);

}  // namespace emulator::source
