// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/machine/race.h"

namespace emulator {

/// The part of one block's race check that is independent of the instruction set: happens-before through partial
/// barriers, and asynchronous accesses (cp.async, TMA, wgmma). race.h has the rule for one access, clock.h the
/// happens-before order, shadow.h the record. The owner (ptx/checker.h) adds loads and stores, and the texts of
/// findings.
class BlockRaces {
 public:
  /// The origin of an access: a thread of the block, its source line, and the instruction's name.
  struct Actor {
    int thread;
    Site at;
    const char* what;
  };
  struct Run {
    const char* memory;
    uint64_t bytes;
  };

  BlockRaces() = default;
  BlockRaces(const BlockRaces&) = delete;
  BlockRaces& operator=(const BlockRaces&) = delete;

  /// Starts block `rank` of cluster number `cluster`; the launch clock numbers the cluster's `blocks` blocks
  /// consecutively.
  void begin(LaunchClock& launch, uint64_t cluster, uint32_t blocks, uint32_t rank, uint32_t threads);
  void end() { clock_.end(); }
  BlockClock& clock() { return clock_; }

  // Named barriers and cluster barriers.
  void barrier_arrive(int thread, size_t id);
  void barrier_complete(size_t id);
  void barrier_acquire(int thread, size_t id);
  void cluster_arrive(int thread, bool relaxed);
  void cluster_complete();
  void cluster_acquire(int thread);

  // mbarriers: `key` identifies an mbarrier within its block. `memory`: in any block of the cluster.
  void mbarrier_init(const Actor& by, const char* memory);
  void mbarrier_use(const Actor& by, const char* memory);
  void mbarrier_arrive(int thread, BlockRaces& owner, uint32_t key, bool relaxed);
  void mbarrier_phase(uint32_t key);
  void mbarrier_acquire(int thread, uint32_t key);

  /// fence.proxy.async, fence.mbarrier_init
  void proxy_fence(int thread) { fence(thread, fenced_); }
  void init_fence(int thread) { fence(thread, init_fenced_); }
  /// The initialisation of an mbarrier, if no thread has issued a proxy fence after the initialisation.
  std::optional<Conflict> unfenced_init(const char* memory);

  /// A thread's cp.async, from its issue to the thread's wait, or to the end of the phase of an mbarrier.
  struct Copy {
    const char* to;
    uint32_t bytes;
    const char* from;
    uint32_t given;
    Site at;
  };
  /// Other accesses to the destination have been checked before.
  void copy_issued(int thread, const Copy& copy);
  void copy_done(int thread, const Copy& copy);
  void copy_done(int thread, const Copy& copy, BlockRaces& owner, uint32_t mbarrier);
  /// Called after copy_issued() for all copies of one instruction.
  void copies_told(BlockRaces& owner, uint32_t mbarrier);

  // TMA and wgmma, which read and write on a thread's behalf.
  /// The shared memory of `owner` is written from now until load_done, which its mbarrier signals.
  void load_issued(const Actor& by, std::span<const Run> runs, BlockRaces& owner, uint32_t mbarrier);
  void load_done(Site at, std::span<const Run> runs, uint32_t mbarrier);
  /// Shared memory is read from now until stores_read. Returns the store's moment.
  uint32_t store_issued(const Actor& by, std::span<const Run> runs);
  /// The stores that the thread's warp issued before a moment have read their sources.
  void stores_read(int thread, uint32_t before);
  /// A new moment, later than all earlier ones.
  uint32_t moment() {
    clock_.now();
    clock_.advance();
    return clock_.tick();
  }
  /// Global memory is read now, or written from now until global_written; `reduces`: now, as by an atomic operation.
  void global_access(const Actor& by, const char* memory, uint64_t bytes, bool write, bool reduces);
  void global_written(int thread, const char* memory, uint64_t bytes);
  /// wgmma number `count` of a warp or warpgroup, from 0. True if its warpgroup has not issued it before: then the
  /// caller must report all of b.
  bool wgmma_issued(int thread, size_t count);
  /// The operands of a wgmma: rows of a, and all of b, which only the first issuing warp reports.
  void wgmma_read(const Actor& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b);
  /// The warp has waited for all wgmmas before number `pending`.
  void wgmma_waited(int warp, size_t pending);

 protected:
  ~BlockRaces() = default;

  /// Block `rank` of the cluster.
  virtual BlockRaces& peer(uint32_t rank) = 0;
  /// The access races with the access in `conflict`.
  virtual void report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes) = 0;
  /// The async proxy reads, or `overwrites`, memory that a thread accessed, and no proxy fence is between the two.
  virtual void report_unfenced(const Actor& by, bool overwrites, const Conflict& access, uintptr_t address) = 0;

  /// The owner's names for instructions and barriers.
  struct Words {
    const char *load, *store;  ///< asynchronous copies to and from shared memory
    const char *strong_write, *strong_read;
    const char *cluster_barrier, *between_blocks;     ///< operations that may order blocks
    const char *load_wait, *store_wait, *wgmma_wait;  ///< the operations that wait for each
  };
  /// `write`, `cp.async`, …: the earlier access.
  static const char* kind_text(const Conflict& conflict, bool shared, const Words& words);
  /// `No thread has waited for the copy.`, or the missing synchronisation.
  std::string order_text(const Actor& by, const Conflict& conflict, const Words& words) const;
  /// Whether the earlier access was by the same thread or by one of its copies.
  bool is_own(const Actor& by, const Conflict& conflict) const;

  /// The writer of a piece that was read.
  struct Source {
    uint64_t written;
    Site at;
    uintptr_t address;
    uint64_t bytes;
  };
  /// Checks and records one thread's accesses; `mark` is the recorded stamp. `sources`: receives the writers of the
  /// memory read.
  template <bool kShared>
  void visit_runs(const Actor& by, uint64_t mark, std::span<const Run> runs, bool write,
                  std::vector<Source>* sources = nullptr);
  uint64_t stamp_of(int thread) { return clock_.now() | static_cast<uint64_t>(thread); }

  BlockClock clock_;

 private:
  void stamp_range(const char* memory, uint64_t bytes, uint64_t mark, Site site);
  void restamp_range(const char* memory, uint64_t bytes, uint64_t from, uint64_t to);
  void fence(int thread, View& fenced);
  bool is_fenced(uint64_t accessed, View BlockRaces::* fences = &BlockRaces::fenced_);
  void copy_done(const Copy& copy, uint64_t mark, int thread);
  /// The stamp for memory that a thread's asynchronous copy accesses, until the copy is complete.
  uint64_t under_way(int thread) const {
    return stamp::make(clock_.block(), stamp::kUnderWay) | static_cast<uint64_t>(stamp::kCopies + thread);
  }
  Views& views();
  Handover& handover(Handover& one);
  int mbarrier_number(uint32_t key);
  Handover& mbarrier(uint32_t key);

  uint32_t first_block_ = 0, blocks_ = 1, rank_ = 0, threads_ = 0;
  bool views_used_ = false;
  Views views_;
  View fenced_;       ///< some thread's knowledge at its fence.proxy.async
  View init_fenced_;  ///< as above, at fence.mbarrier_init
  std::vector<uint32_t> mbarrier_keys_;
  std::vector<Handover> mbarriers_;
  std::array<Handover, 16> named_;
  Handover cluster_;
  struct Wgmma {
    uint32_t tick;
    std::vector<Source> b;  ///< writers of b, as the first issuing warp saw them
  };
  struct Warpgroup {
    size_t first = 0;
    std::vector<Wgmma> wgmmas;  ///< wgmmas from number `first`
  };
  std::array<Warpgroup, 8> warpgroups_;
};

}  // namespace emulator
