// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulator/machine/block_races.h"
#include "emulator/ptx/check/undefined_values.h"
#include "emulator/ptx/instructions/access.h"
#include "emulator/ptx/instructions/addresses.h"

// `weft-emulate --check races` and `--check uninitialised`: accesses of kernels against each other and against
// uninitialised memory. The order of threads is machine/block_races.h. A warp runs in lock step here, but its lanes are
// separate threads: only __syncwarp orders accesses of two lanes in different instructions. Lanes that write the same
// address in one instruction race if they write different values.

namespace emulator::ptx {

/// The checks of one launch. One OS thread runs all its blocks.
struct LaunchChecks {
  bool races, fresh;
  LaunchClock clock;
  /// Pairs of sites that were reported in this launch.
  std::unordered_set<uint64_t> reported;
  /// Pairs of which only equal writes were reported.
  std::unordered_set<uint64_t> repeated;

  explicit LaunchChecks(const Launch& launch);
};

/// The checks of one block.
class BlockChecks final : private BlockRaces {
 public:
  explicit BlockChecks(Block& block);
  ~BlockChecks();

  using BlockRaces::clock, BlockRaces::moment, BlockRaces::Run;
  Site site(const Instruction* i) const;
  void access(Warp& w, const Instruction* i, const AccessNote& note);

  // Barriers.
  void barrier_arrive(Warp& w, uint32_t lanes, size_t id);
  void barrier_complete(size_t id, bool whole);
  void barrier_acquire(Warp& w, uint32_t lanes, size_t id);
  void cluster_arrive(Warp& w, uint32_t lanes, bool relaxed);
  void cluster_acquire(Warp& w, uint32_t lanes);
  using BlockRaces::cluster_complete;

  // mbarriers. `place`: in any block of the cluster; without one, in this block.
  void mbarrier_init(Warp& w, const Instruction* i, int lane, const char* place);
  void mbarrier_use(Warp& w, const Instruction* i, int lane, const char* place);
  void mbarrier_arrive(Warp& w, int lane, const SharedPlace& place, bool relaxed);
  void mbarrier_acquire(Warp& w, int lane, uint32_t at);
  using BlockRaces::mbarrier_phase;

  void fence(Warp& w, const FenceNote& note);

  /// A cp.async of a lane, from its issue to the wait of its thread, or, with `mbarrier`, to the end of that
  /// barrier's phase.
  using BlockRaces::Copy;
  void copy_issued(Warp& w, int lane, const Copy& copy);
  void copy_done(Warp& w, int lane, const Copy& copy, const SharedPlace* mbarrier);
  /// Called after the copies of one instruction.
  void copies_told(const SharedPlace& mbarrier);

  // Copies by TMA and wgmma, which read and write on a thread's behalf.
  /// The issuing thread and source line.
  struct Issuer {
    Warp& w;
    int lane;
    Site at;
    const char* what;
    operator Actor() const { return {static_cast<int>(w.first_thread) + lane, at, what}; }
  };
  /// This block's shared memory is written from now until load_done, which the mbarrier at `mbarrier` signals.
  void load_issued(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier);
  void load_done(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier);
  /// Shared memory is read from now until stores_read. Returns the store's moment.
  uint32_t store_issued(const Issuer& by, std::span<const Run> runs);
  /// The lane's stores issued before a moment have read their sources.
  void stores_read(Warp& w, int lane, uint32_t before);
  /// Global memory is read now, or written from now until global_written; `reduces`: now, as by an atomic operation.
  void global_access(const Issuer& by, const char* memory, uint64_t bytes, bool write, bool reduces);
  void global_written(const Issuer& by, const char* memory, uint64_t bytes);
  /// wgmma number `count` of a warp, from 0. True if the warp is the first of its warpgroup to issue it: then the
  /// caller must report all of b.
  bool wgmma_issued(Warp& w, size_t count);
  /// The operands of a wgmma: the warp's own rows of a, and all of b, which only the warpgroup's first warp reports.
  void wgmma_read(const Issuer& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b);
  /// The warp has waited for all wgmmas before number `pending`.
  void wgmma_waited(Warp& w, size_t pending);

  /// An mbarrier gets bytes from the async proxy: its initialisation must have been fenced.
  void mbarrier_by_proxy(const Issuer& by, const SharedPlace& place);

  /// Reports asynchronous work for which no thread has waited when its thread, warp or block ends.
  void report_unawaited(const Issuer& by, const char* why);
  /// --check uninitialised: the lane gets a value that CUDA leaves undefined.
  void report_undefined(Warp& w, const Instruction* i, int lane, const std::string& why);
  /// --check uninitialised: Warp::undefined is set, and `i` runs next.
  void follow(Warp& w, const Instruction* i);
  /// As above: shfl gives lane l of register `to` the value that lane source[l] of `from` has.
  void exchanged(Warp& w, Ref to, Ref from, uint32_t lanes, const uint32_t* source);
  /// A lane accesses shared memory of a cluster's block that has ended.
  void report_ended(Warp& w, const Instruction* i, int lane, const char* what, const Block& block);

 private:
  template <bool kShared>
  void visit(Warp& w, const Instruction* i, const AccessNote& note);
  template <bool kShared>
  void visit_row(Warp& w, Visitor<kShared>& visitor, const CellRow& row, uintptr_t address, int first,
                 const AccessNote& note, bool joins);
  template <bool kShared>
  bool all_know(Warp& w, uint64_t written, uintptr_t address);
  template <bool kShared>
  void visit_lane(Warp& w, Visitor<kShared>& visitor, int lane, char* memory, uint32_t bytes, const AccessNote& note);
  template <bool kShared>
  void visit_cell(Warp& w, Visitor<kShared>& visitor, int lane, const Cell& cell, uintptr_t at, size_t bytes,
                  const AccessNote& note);
  template <bool kShared>
  bool same_value(const Warp& w, const AccessNote& note, int lane, const Visitor<kShared>& visitor, uintptr_t address,
                  size_t bytes) const;
  void strong(Warp& w, const AccessNote& note);
  void fresh(Warp& w, const Instruction* i, const AccessNote& note);
  void fresh_read(const Issuer& by, std::span<const Run> runs);

  // checker_values.cpp
  UndefinedValues& values_of(const Warp& w);
  uint32_t read_of(const Warp& w, const Instruction* i, int lane, const AccessNote& note, const char* at);
  void load_undefined(Warp& w, const Instruction* i, const AccessNote& note);
  void store_undefined(Warp& w, const Instruction* i, const AccessNote& note);
  void use(Warp& w, const Instruction* i, uint32_t slot, uint32_t lanes, std::string_view how);

  // checker_report.cpp
  BlockRaces& peer(uint32_t rank) override;
  void report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes) override {
    report(by, conflict, shared, address, bytes, false);
  }
  /// `again`: both accesses write the same value.
  void report(const Actor& by, const Conflict& conflict, bool shared, uintptr_t address, uint64_t bytes, bool again);
  void report_unfenced(const Actor& by, bool overwrites, const Conflict& access, uintptr_t address) override;
  void report_fresh(const Warp& w, int lane, Site at, const char* memory, uint64_t bytes, Space space,
                    const std::string& use = "");
  bool is_new(Site a, Site b);
  std::string who_text(uint64_t stamp) const;
  std::string place_text(uintptr_t address, bool shared) const;
  std::string where(Site at) const;
  BlockChecks* owner_of(uintptr_t address) const;

  Block& block_;
  LaunchChecks& launch_;
  std::vector<UndefinedValues> values_;         ///< indexed by warp; empty before the first undefined value
  std::vector<UndefinedRead> undefined_reads_;  ///< indexed by number
  std::unordered_map<const char*, uint32_t> undefined_stores_;  ///< in shared and local memory: the number of the read
};

/// The checks of a block with --check races, else nullptr.
inline BlockChecks* race_checks_of(const Block& block) {
  return block.checks && block.grid->checks->races ? block.checks.get() : nullptr;
}

/// Called at the launch of a grid and at the beginning of a cluster's blocks.
void begin_checks(Grid& grid);
void begin_checks(Cluster& cluster);

}  // namespace emulator::ptx
