// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <deque>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "emulator/machine/race.h"
#include "emulator/ptx/access.h"
#include "emulator/ptx/addresses.h"

// `weft-emulate --check races` and `--check uninitialised`: accesses of kernels against each other and against
// uninitialised memory. The rule for one access is machine/race.h, the order is machine/clock.h, the record
// is machine/shadow.h. A warp runs in lock step here, but its lanes are threads of their own: what two of them do in
// different instructions is ordered by __syncwarp only. Lanes that write the same address in one instruction race if
// they write different values.

namespace emulator::ptx {

/// Of one launch. One OS thread runs all of its blocks.
struct LaunchChecks {
  bool races, fresh;
  LaunchClock clock;
  /// Pairs of sites that were reported in this launch.
  std::unordered_set<uint64_t> reported;

  explicit LaunchChecks(const Launch& launch);
};

/// Of one block.
class BlockChecks {
 public:
  explicit BlockChecks(Block& block);
  ~BlockChecks();
  BlockChecks(const BlockChecks&) = delete;
  BlockChecks& operator=(const BlockChecks&) = delete;

  BlockClock& clock() { return clock_; }
  Site site(const Instruction* i) const;
  void access(Warp& w, const Instruction* i, const AccessNote& note);

  // Barriers.
  void barrier_arrive(Warp& w, uint32_t lanes, size_t id);
  void barrier_complete(size_t id, bool whole);
  void barrier_acquire(Warp& w, uint32_t lanes, size_t id);
  void cluster_arrive(Warp& w, uint32_t lanes, bool relaxed);
  void cluster_complete();
  void cluster_acquire(Warp& w, uint32_t lanes);

  // mbarriers. `place`: in any block of the cluster; without one, in this block.
  void mbarrier_init(Warp& w, const Instruction* i, int lane, const char* place);
  void mbarrier_use(Warp& w, const Instruction* i, int lane, const char* place);
  void mbarrier_arrive(Warp& w, int lane, const SharedPlace& place, bool relaxed);
  void mbarrier_phase(uint32_t at);
  void mbarrier_acquire(Warp& w, int lane, uint32_t at);

  void fence(Warp& w, const FenceNote& note);

  /// A cp.async of a lane, from its issue to the wait of its thread, or, with `mbarrier`, to the end of that
  /// barrier's phase.
  struct Copy {
    const char* to;
    uint32_t bytes;
    const char* from;
    uint32_t given;
    Site at;
  };
  void copy_issued(Warp& w, int lane, const Copy& copy);
  void copy_done(Warp& w, int lane, const Copy& copy, const SharedPlace* mbarrier);
  /// After all findings that are told at once.
  void copies_told(const SharedPlace& mbarrier);

  // Copies by TMA and wgmma, which read and write on a thread's behalf.
  /// The issuing thread and source line.
  struct Issuer {
    Warp& w;
    int lane;
    Site at;
    const char* what;
  };
  struct Run {
    const char* memory;
    uint64_t bytes;
  };
  /// This block's shared memory is written from now until load_done, which the mbarrier at `mbarrier` tells.
  void load_issued(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier);
  void load_done(const Issuer& by, std::span<const Run> runs, uint32_t mbarrier);
  /// Shared memory is read from now until stores_read. Returns its moment.
  uint32_t store_issued(const Issuer& by, std::span<const Run> runs);
  /// The lane's stores issued before a moment have read their sources.
  void stores_read(Warp& w, int lane, uint32_t before);
  uint32_t moment() {
    clock_.now();
    clock_.advance();
    return clock_.tick();
  }
  /// Global memory is read now, or written from now until global_written; `reduces`: now, as by an atomic operation.
  void global_access(const Issuer& by, const char* memory, uint64_t bytes, bool write, bool reduces);
  void global_written(const Issuer& by, const char* memory, uint64_t bytes);
  /// wgmma `count` of a warp, the first having 0. True when it is the first of its warpgroup that issues it: then all
  /// of b is to be told.
  bool wgmma_issued(Warp& w, size_t count);
  /// What it reads: the warp's own rows of a, and all of b, whose runs only the warpgroup's first warp reports.
  void wgmma_read(const Issuer& by, size_t count, std::span<const Run> rows_of_a, std::span<const Run> b);
  /// The warp has waited for all wgmmas before number `pending`.
  void wgmma_waited(Warp& w, size_t pending);

  /// A lane reaches shared memory of a block of the cluster that has ended.
  void report_ended(Warp& w, const Instruction* i, int lane, const char* what, const Block& block);

 private:
  template <bool kShared>
  void visit(Warp& w, const Instruction* i, const AccessNote& note);
  template <bool kShared>
  bool visit_row(Warp& w, Site at, const AccessNote& note);
  template <bool kShared>
  void visit_lane(Warp& w, Visitor<kShared>& visitor, int lane, char* memory, uint32_t bytes, const AccessNote& note);
  template <bool kShared>
  bool same_value(const Warp& w, const AccessNote& note, int lane, const Visitor<kShared>& visitor, uintptr_t address,
                  size_t bytes) const;
  /// The writer of a piece that was read.
  struct Source {
    uint64_t written;
    Site at;
    uintptr_t address;
    uint64_t bytes;
  };
  /// What one lane accesses; `mark` is the stamp that stays. `sources`: receives the writers of what is read.
  template <bool kShared>
  void visit_runs(const Issuer& by, uint64_t mark, std::span<const Run> runs, bool write,
                  std::vector<Source>* sources = nullptr);
  void stamp_range(const char* memory, uint64_t bytes, uint64_t mark, Site site);
  void restamp_range(const char* memory, uint64_t bytes, uint64_t from, uint64_t to);
  void strong(Warp& w, const AccessNote& note);
  void fresh(Warp& w, const Instruction* i, const AccessNote& note);
  void fresh_read(const Issuer& by, std::span<const Run> runs);
  bool is_fenced(uint64_t written) const;

  // checker_report.cpp
  void report(Warp& w, Site at, const Conflict& conflict, bool shared, const char* verb, uintptr_t address,
              uint64_t bytes);
  void report_unfenced(Warp& w, int lane, Site at, Site written_at, uint64_t writer, const char* what,
                       uintptr_t address);
  void report_fresh(Warp& w, int lane, Site at, const char* memory, uint64_t bytes, Space space);
  bool is_new(Site a, Site b);
  std::string who_text(uint64_t stamp) const;
  std::string place_text(uintptr_t address, bool shared) const;
  std::string where(Site at) const;

  uint64_t stamp_of(const Warp& w, int lane);
  /// The stamp of what a thread's asynchronous copy touches until it is done.
  uint64_t under_way(const Warp& w, int lane) const;
  Views& views();
  Handover& handover(Handover& one);
  int mbarrier_number(uint32_t at);
  Handover& mbarrier(uint32_t at);
  BlockChecks& keeper() const;
  BlockChecks* owner_of(uintptr_t address) const;

  Block& block_;
  LaunchChecks& launch_;
  BlockClock clock_;
  bool views_used_ = false;
  Views views_;
  View fenced_;  ///< some thread's knowledge at its fence.proxy.async
  std::vector<uint32_t> mbarrier_places_;
  std::vector<Handover> mbarriers_;
  std::array<Handover, 16> named_;
  Handover cluster_;
  struct Wgmma {
    uint32_t tick;
    std::vector<Source> b;  ///< its writers, as the first issuing warp saw them
  };
  struct Warpgroup {
    size_t first = 0;
    std::deque<Wgmma> wgmmas;  ///< from `first` on
  };
  std::array<Warpgroup, 8> warpgroups_;
};

/// The checks of a block when races are looked for, else nullptr.
inline BlockChecks* race_checks_of(const Block& block) {
  return block.checks && block.grid->checks->races ? block.checks.get() : nullptr;
}

/// Called at the launch of a grid and at the beginning of a cluster's blocks.
void begin_checks(Grid& grid);
void begin_checks(Cluster& cluster);

}  // namespace emulator::ptx
