// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/fault.h"
#include "emulator/machine/memory.h"
#include "emulator/ptx/run/kernel.h"

// Execution: a grid of clusters of blocks of warps of 32 lanes. One OS thread runs all blocks of a cluster, warp by warp;
// a warp runs until it blocks, ends or its turn is over, so nothing here needs a stack of its own.

namespace emulator {
class Touched;
}

namespace emulator::ptx {

struct Block;
class BlockChecks;
struct CallStacks;
struct Cluster;
struct Count;
struct Grid;
struct Launch;
struct LaunchChecks;
class DeviceLaunches;
class LaunchProfile;
namespace timing {
class ClusterTime;
}

// The windows of generic addresses. All else is an address of the process. No pointer of x86-64 or aarch64 is in them.
constexpr uint64_t kSharedWindow = uint64_t{1} << 56;  ///< + shared::cluster address
constexpr uint64_t kLocalWindow = uint64_t{2} << 56;   ///< + offset in the lane's local memory
constexpr uint64_t kCodeWindow = uint64_t{3} << 56;    ///< addresses of device functions: nothing to read
constexpr uint64_t kWindowMask = uint64_t{0xff} << 56;
/// Shared memory begins here (the first KiB is the system's own, as on sm_90). A shared::cluster address of another block
/// has its rank + 1 from bit 24 up; without, it is the own block's.
constexpr uint32_t kSharedBase = 1024;
/// Cooperative groups keep barriers and one number per warp at %reserved_smem_offset_1, at first zeros.
constexpr uint32_t kScratchBytes = 288;
constexpr int kRankShift = 24;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

/// Lanes of a warp that are at the same instruction. They run together.
struct Group {
  const Instruction* pc = nullptr;
  uint32_t mask = 0;
  enum class State : uint8_t {
    ready,
    polling,  ///< ready, but its last condition was false: others first
    meeting,  ///< at a .sync instruction that waits for more lanes of this warp
    blocked,  ///< until wake()
  } state = State::ready;
  const char* waits_for = nullptr;  ///< `bar.sync 0`, `mbarrier.try_wait`: for reports
  uint64_t wait_key = 0;            ///< used by the blocking handler to tell waiters apart
  uint32_t depth = 0;               ///< calls: the deepest run first, so that lanes reconverge after the call
};

/// How a warp's turn ended.
enum class Turn : uint8_t {
  none,    ///< no lane could run
  again,   ///< it is not over: lanes went apart, or some ended
  waits,   ///< work was done; all lanes wait now, or have ended
  yields,  ///< the lanes asked to let others run
  polls,   ///< nothing was done: the lanes still wait
};

struct Warp {
  // Used by handlers all the time.
  char* registers = nullptr;
  const char* constants = nullptr;
  uint32_t* predicates = nullptr;
  uint32_t mask = 0;       ///< lanes that execute now, before the guard
  uint32_t carry = 0;      ///< CC.CF of each lane (addc, subc, madc)
  int32_t fuel = 0;        ///< backward branches left in this turn
  Block* block = nullptr;
  uint32_t index = 0;      ///< in its block
  uint32_t first_thread = 0;
  uint32_t exited = 0;     ///< lanes that have ended, or never were (a last warp that is not full)
  uint32_t current = 0;    ///< the group that runs
  Turn turn = Turn::none;
  bool spins = false;      ///< memory that others write was read since the last turn (volatile, acquire, compare and swap)
  bool undefined = false;  ///< a register holds a value from memory that was never written (--check uninitialised)
  bool changed = false;    ///< memory that others read was written since the last turn
  std::vector<Group> groups;
  char* local = nullptr;   ///< lane l's local memory is at local + l * local_bytes
  uint32_t local_bytes = 0;  ///< per lane: Kernel::local_bytes and the stack
  uint32_t cluster_arrived = 0, cluster_phase = 0;  ///< barrier.cluster, by lane: has arrived and not waited; in an odd phase
  std::shared_ptr<void> async, bulk;  ///< cp.async groups and the like, by lane; copy_family's and bulk_family's own
  std::shared_ptr<CallStacks> calls;

  /// Registers as 32 lanes of T (4 or 8 bytes; 16 for b128).
  template <class T>
  const T* in(Ref r) const {
    return reinterpret_cast<const T*>((r & kConstant ? constants : registers) + (r & ~kConstant));
  }
  template <class T>
  T* out(Ref r) const {
    return reinterpret_cast<T*>(registers + r);
  }
  /// The lanes that execute an instruction: the group's, less those whose guard says no.
  uint32_t lanes(const Instruction* i) const {
    if (i->guard == 0) return mask;
    const uint32_t p = predicates[(i->guard >> 1) - 1];
    return mask & (i->guard & 1 ? ~p : p);
  }
  uint32_t predicate(Ref r, bool negated = false) const { return negated ? ~predicates[r] : predicates[r]; }
  void set_predicate(Ref r, uint32_t lanes, uint32_t value) {
    if (r != kNoRef) predicates[r] = (predicates[r] & ~lanes) | (value & lanes);
  }

  // How a handler ends the warp's turn. Each returns nullptr, for `return w.block_at(…)`.

  /// The group goes on at `next` after wake() for its lanes.
  const Instruction* block_lanes(const Instruction* next, const char* what, uint64_t key = 0);
  /// The group tries `again` when others have run: its condition is not true yet. Deadlock is when all only poll and
  /// nothing asynchronous is left to be applied.
  const Instruction* poll(const Instruction* again, const char* what);
  /// The group goes on at `next`, but other warps come first (nanosleep, the end of the fuel).
  const Instruction* yield(const Instruction* next);
  /// For .sync instructions: true when all lanes of `members` that have not exited are in this group. Else the lanes are
  /// gathered at `i`: return meet(i).
  bool together(uint32_t members) const { return (members & ~exited & ~mask) == 0; }
  const Instruction* meet(const Instruction* i, const char* what, uint32_t members);
  /// `taken` of the group's lanes go to `target`, the others to `next`.
  const Instruction* branch(const Instruction* next, const Instruction* target, uint32_t taken);
  /// The given lanes of the group end; the others go on at `next`.
  const Instruction* exit_lanes(const Instruction* next, uint32_t lanes);
  /// Lanes that block_lanes() put to sleep may go on.
  void wake(uint32_t lanes);
  /// Lanes of other groups, which meet(), go on behind their instructions.
  void pass(uint32_t lanes);

  /// Runs until the lanes wait, poll, yield or have ended.
  Turn run(int32_t turns_fuel);

  /// Ends the kernel. `what` is one clause; the kernel, block, thread and source line are put before it.
  [[noreturn]] void fail(const Instruction* i, int lane, FaultCode code, const std::string& what) const;
  /// As above, without an instruction (an asynchronous copy that arrives).
  [[noreturn]] void fail_later(uint32_t line, int lane, FaultCode code, const std::string& what) const;

  const Kernel& kernel() const;

 private:
  bool pick();
  void merge();
};

/// A name as C++ has it.
std::string demangled(const std::string& name);
/// `block (0,0,0), thread (31,0,0)`; `kernel <<<(1,1,1), (32,1,1), 0>>> on stream 3`.
std::string thread_text(const Warp& w, int lane);
/// `0x0000ffff`; `lanes 0-15, 20`.
std::string mask_text(uint32_t mask);
std::string lanes_text(uint32_t lanes);
std::string launch_text(const Launch& launch);

/// An operation that takes effect later: an asynchronous copy, a wgmma. Applied at a moment that the seed
/// chooses between its issue and its wait; in the fixed order as late as it can be.
struct Pending {
  virtual ~Pending() = default;
  virtual void apply() = 0;
  /// The check of races: a block ends, whose shared memory this may still access.
  virtual void block_ends(const Block&) {}
};

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  Dim3 index;              ///< blockIdx
  uint64_t number = 0;     ///< linear
  uint32_t rank = 0;       ///< in its cluster
  char* shared = nullptr;  ///< address a of .shared is at shared + a; the first kSharedBase bytes are unused
  uint32_t shared_end = 0; ///< addresses from kSharedBase to here exist
  std::vector<Warp> warps;
  uint32_t threads = 0, live_threads = 0;
  std::unique_ptr<char, void (*)(void*)> memory{nullptr, [](void*) {}};

  struct Barrier {
    uint32_t arrived = 0;   ///< threads
    uint32_t expected = 0;  ///< threads; 0: none has come yet
    bool all = false;       ///< expects all threads of the block, also those that exit meanwhile
    bool uncounted = false; ///< a thread named no count: __syncthreads
    uint32_t value = 0;     ///< barrier.red: the result of the arrived threads (or, and: bit; popc: count)
    uint32_t phase = 0;
    uint32_t padding = 0;   ///< lanes that ended or never were, of the warps that arrived: counts are of whole warps
  };
  std::array<Barrier, 16> barriers;
  uint32_t open_barriers = 0;  ///< barriers at which a thread has arrived, a bit each
  /// Ranges of global memory that instructions found last; a slot each, by the instruction's address. All blocks that an
  /// OS thread runs of a grid share them.
  struct Known {
    uint64_t begin = 0, bytes = 0, generation = 0;
  };
  static constexpr size_t kKnown = 64;
  Known* known = nullptr;
  std::shared_ptr<void> hopper;  ///< the wgmmas of its warps: wgmma.cpp's own
  std::shared_ptr<void> register_pool;  ///< register_pool.cpp's own

  std::shared_ptr<BlockChecks> checks;  ///< checker.h: of --check races and uninitialised, or nullptr

  /// Pending operations of this block, oldest first. Owners may apply and remove entries themselves.
  std::deque<std::shared_ptr<Pending>> pending;

  bool done() const { return live_threads == 0; }
  /// barrier_family: a thread less may complete a barrier that expects all of the block.
  void threads_exited();
};

struct Cluster {
  Grid* grid = nullptr;
  Dim3 index;
  uint64_t number = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t barrier_arrived = 0, barrier_phase = 0;  ///< barrier.cluster: threads of all blocks
  uint32_t threads = 0, live_threads = 0;
  uint64_t random = 0;  ///< state of its generator
  bool phase_ended = false;             ///< a phase of an mbarrier has ended since it was cleared
  Touched* touched = nullptr;           ///< notes its accesses to global memory: Grid::early, then Grid::touched
  bool waits = false;                   ///< a thread is at griddepcontrol.wait, and Grid::early notes the accesses
  Count* count = nullptr;               ///< count of the OS thread that runs it, with --count, --time and a profile
  timing::ClusterTime* time = nullptr;  ///< with --time
  std::shared_ptr<void> time_owner;

  /// 0 .. bound - 1; always 0 under seed 0, so that 0 must be the fixed order's choice.
  uint32_t choose(uint32_t bound);
  bool random_order() const;
  /// The block at a rank, or nullptr.
  Block* block(uint32_t rank) const { return rank < blocks.size() ? blocks[rank].get() : nullptr; }
};

/// One launch.
struct Launch {
  const Kernel* kernel = nullptr;
  Dim3 grid, block, cluster;
  uint32_t dynamic_shared = 0;
  uint32_t stack_bytes = 1024;   ///< per thread: cudaLimitStackSize
  bool cooperative = false;
  bool programmatic = false;     ///< may begin before the end of the previous kernel in its stream
  int resident_blocks = 1;       ///< an SM, for --time
  std::vector<char> parameters;  ///< Kernel::parameter_bytes
  int device = 0;
  uint64_t number = 0;           ///< unique over the process
  std::string stream;            ///< for reports: `stream 3`
  int depth = 0;                 ///< above 0: launched by a kernel
};

struct Grid {
  const Launch* launch = nullptr;
  const Kernel* kernel = nullptr;
  char* parameters = nullptr;    ///< 64-byte aligned, readable by kernels at this very address
  uint64_t blocks = 0;
  uint64_t seed = 0;             ///< for the orders; 0: fixed ones
  uint32_t cluster_blocks = 1;
  std::atomic<uint64_t> next_cluster{0};
  std::atomic<bool> failed{false};
  static constexpr uint32_t kWorkspace = 4096;
  char* sync_workspace = nullptr;  ///< the workspace of a cooperative launch: %envreg1 has the high half of its address, %envreg2 the low one
  Dim3 cluster_dim{1, 1, 1};
  bool checked = false;          ///< every access is told to the checks, see access.h
  std::atomic<bool> suspected{false};   ///< that it makes no progress for ever: see standstill.h
  std::atomic<bool> reads_host{false};  ///< has read memory of the host while it was
  std::shared_ptr<LaunchChecks> checks;
  LaunchProfile* profile = nullptr;  ///< with --profile and exported_counts.h
  Touched* touched = nullptr;    ///< notes the grid's accesses to global memory
  Touched* early = nullptr;      ///< notes those that may happen before the previous kernel's end, or nullptr
  std::atomic<bool> waited{false};  ///< a thread has executed griddepcontrol.wait while `early` noted
  DeviceLaunches* launches = nullptr;  ///< kernels that this grid launches
};

/// Runs the whole grid; returns when its last thread has ended. Errors: Fault. Launch limits are the caller's to check.
/// `touched`: receives the grid's accesses to global memory, or nullptr. `early`: receives instead the accesses that
/// need not follow a griddepcontrol.wait; nullptr: the kernel begins after the previous one's end.
void run(const Launch& launch, Touched* touched = nullptr, Touched* early = nullptr);

// Memory of kernels, for all families.

/// The process's address of [address, address + bytes) of a generic address, for one lane. Errors: illegal address,
/// misaligned. `write`: the access writes.
char* resolve_generic(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write);
char* resolve_global(Warp& w, const Instruction* i, int lane, uint64_t address, uint32_t bytes, bool write);
/// A shared::cta or shared::cluster address.
char* resolve_shared(Warp& w, const Instruction* i, int lane, uint32_t address, uint32_t bytes, bool write);
char* resolve_local(Warp& w, const Instruction* i, int lane, uint32_t address, uint32_t bytes, bool write);
/// As above, for an access by no lane: a copy that arrives. `what` names it in the report.
char* resolve_async(Warp& w, uint32_t line, const char* what, uint64_t address, uint64_t bytes, bool write,
                    bool atomic = false);

}  // namespace emulator::ptx
