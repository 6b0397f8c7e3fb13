// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "emulator/machine/memory.h"
#include "emulator/machine/time_model.h"
#include "emulator/ptx/run/warp.h"

// Counts of --time while a kernel runs: machine instructions by unit, wavefronts of shared memory, sectors that leave
// the SM, bytes from memory, tensor FLOP, and the longest chain of dependent instructions. The model (time_model.h)
// computes the time.
//
// The chain is kept as clocks of warps: an instruction begins when its operands are ready, in any order within
// a basic block, as ptxas may move instructions; basic blocks follow each other. Barriers, mbarriers, asynchronous
// copies and wgmma hand clocks from one warp to the next. Nobody waits for a unit that others use: the model adds
// that.

namespace emulator::ptx {

struct BulkCopy;
struct SharedPlace;
struct TimeNote;
struct TimeTable;

/// Whether launches are timed.
bool timed();
/// Whether only a part of each launch runs (--time-waves). Results mean nothing then: nobody multiplies or copies for
/// them, and a launch that has been counted does not run again.
bool sampled();

namespace timing {

using Cycle = double;

/// Sectors of 32 bytes of a page of 4 KiB.
struct Sectors {
  uint64_t bits[2] = {0, 0};
  bool add(uint32_t sector) {
    uint64_t& word = bits[sector >> 6];
    const uint64_t bit = uint64_t{1} << (sector & 63);
    const bool is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
};
using Pages = std::unordered_map<uint64_t, Sectors>;

/// A part of a launch during which its resident blocks ask for half of what L2 holds.
struct Epoch {
  Pages read, written;
};

struct WarpClock {
  Cycle entry = 0, horizon = 0;  ///< when the basic block began, and the latest begin of its instructions
  Cycle issued = 0;              ///< cycle of its last instruction
  const Instruction* begin = nullptr;  ///< the basic block's
  uint32_t turn = 0;                   ///< iteration of a loop that ptxas unrolls
  Cycle stored[2] = {0, 0};      ///< the last store to global and to shared memory: loads do not pass it
  Cycle tensor_free = 0;
  Cycle copies = 0;              ///< the end of the cp.async of the open group
  std::deque<Cycle> copy_groups, matrix_groups, bulk_groups;
  Cycle bulk = 0;
  int32_t barrier = -1;  ///< waits for this barrier …
  uint32_t phase = 0;
  bool waits_for_cluster = false;
  uint32_t cluster_phase = 0;    ///< how often it has arrived at barrier.cluster
  uint32_t first_touches = 0;    ///< sectors
  std::vector<Cycle> ready;      ///< indexed by slot of the register file
  std::vector<Cycle> predicates;
};

struct BlockClock {
  std::vector<WarpClock> warps;
  std::array<std::array<Cycle, 2>, 16> barriers{};
  struct Phases {
    Cycle pending = 0, done[2] = {0, 0};
  };
  std::unordered_map<uint32_t, Phases> mbarriers;  ///< keyed by shared address
  /// Who touched a sector last, 0 for nobody: the warp's number + 1 in the upper 10 bits, its first touches till then.
  using Touched = std::array<uint32_t, 128>;
  std::unordered_map<uint64_t, Touched> l1;
  uint64_t last_page = ~uint64_t{0};
  Touched* last = nullptr;
};

/// For a cluster that runs.
class ClusterTime {
 public:
  ClusterTime(const Cluster& cluster, class LaunchTime& launch);
  ClusterTime(const ClusterTime&) = delete;
  ClusterTime& operator=(const ClusterTime&) = delete;

  /// Runs and counts one instruction of a warp.
  const Instruction* step(Warp& w, const Instruction* i);

  // Reports of the instruction families. `at`: the shared address of an mbarrier.
  void bulk_issued(BulkCopy& copy);
  void mbarrier_arrived(const Warp& w, const SharedPlace& place);
  void bytes_came(const SharedPlace& place, Cycle when);
  void mbarrier_phase_ended(const SharedPlace& place, bool odd);
  void mbarrier_waited(const Warp& w, const SharedPlace& place, bool odd);

 private:
  friend class LaunchTime;
  WarpClock& clock(const Warp& w);
  Cycle access(Warp& w, const TimeNote& note, uint32_t lanes, WarpClock& clock, bool& joined);
  /// Counts an atomic operation of lanes in shared memory and returns its latency.
  Cycle shared_atomic(const TimeNote& note, const uint32_t* address, uint32_t lanes, WarpClock& clock);
  uint32_t read_global(BlockClock& block, uint32_t warp, WarpClock& clock, uint64_t sector);
  /// Sectors side by side that are asked of L2.
  void to_l2(uint64_t sector, uint64_t count, bool write);

  class LaunchTime& launch_;
  time_model::Work work_;
  std::vector<BlockClock> blocks_;
  std::vector<Cycle> cluster_phases_;  ///< when the last warp arrived at barrier.cluster
  double asked_ = 0;  ///< bytes of L2
  std::unordered_map<uint64_t, double> atomics_;  ///< cycles of a slice of L2, by its part of memory
  uint32_t epoch_ = 0, wave_ = 0;
  uint64_t last_page_[2] = {~uint64_t{0}, ~uint64_t{0}};
  Sectors* last_[2] = {nullptr, nullptr};  ///< nullptr: nobody notes this page
  std::unordered_map<uint32_t, Epoch> epochs_;
};

/// The times of a launch, which chooses its clusters that run: all, or some whole waves.
class LaunchTime {
 public:
  explicit LaunchTime(const Launch& launch);
  uint64_t first() const { return first_; }
  uint64_t count() const { return count_; }
  void add(ClusterTime& cluster);
  /// When all have been added.
  time_model::Work work();

 private:
  friend class ClusterTime;
  const Launch& launch_;
  const time_model::Chip* chip_;
  uint64_t clusters_, per_wave_, first_, count_;
  double epoch_bytes_;  ///< bytes that a cluster requests in an epoch.
  /// A sample: one page in this number, a power of two, chosen by a hash (Waldspurger et al., "Efficient MRC
  /// Construction with SHARDS", FAST 2015).
  uint64_t page_step_;
  double l1_bytes_;     ///< per block
  std::mutex mutex_;
  time_model::Work work_;
  std::unordered_map<uint64_t, Epoch> epochs_;
  std::unordered_map<uint64_t, double> atomics_;
};

/// Adds a launch to what the program's end prints.
void report(const Launch& launch, const time_model::Work& work);
/// Reports a launch that equals an earlier one: kernel, sizes and arguments, whose addresses may lie in
/// other allocations. False: there was none, or launches are not sampled.
bool report_again(const Launch& launch);
/// Calls visit(offset among the parameters, address, its allocation) for each argument that is the address of memory.
template <class Visit>
void for_each_address(const Launch& launch, Visit&& visit) {
  for (size_t at = 0; at + sizeof(uint64_t) <= launch.parameters.size(); at += sizeof(uint64_t)) {
    uint64_t value;
    std::memcpy(&value, launch.parameters.data() + at, sizeof(value));
    if (Allocation owner; find_allocation(value, owner)) visit(at, value, owner);
  }
}

}  // namespace timing
}  // namespace emulator::ptx
